"""The parts of a record about the nodes of an allocation: the batch job, the placement of ranks, the sniff test."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class RecordPart(BaseModel):
    """What all parts of a record have in common: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Job(RecordPart):
    """The batch job that a launch ran in: its id, its partition, and how often it was requeued before."""

    id: str
    partition: str
    restarts: int


class PlacedNode(RecordPart):
    """One node of an allocation and the ranks on it. `machine` is the id of its hardware and kernel, `boot` of this
    boot of its kernel: nodes with the same one share a machine."""

    name: str
    address: str
    switch: str = Field(
        description="the switches above it, from the top, as Slurm writes them (`spine.leaf`); empty: not known"
    )
    machine: str
    boot: str
    cores: int
    ranks: list[int]


class Placement(RecordPart):
    """Where a launch over several nodes ran. `streamed`: its files were sent over the network, since the nodes share no
    file system."""

    launcher: str
    kind: Literal["slurm", "hosts"]
    cluster: str
    job: Job | None
    interface: str
    streamed: bool
    nodes: list[PlacedNode]


class Sniffed(RecordPart):
    """One figure of a node: the median of `n` repetitions and the interval of that median (None: too few of them)."""

    value: float
    low: float | None
    high: float | None
    n: int


class SniffedNode(RecordPart):
    """What all cores of a node copied (B/s) and multiplied (FLOP/s, float32), and the rate (B/s) and round trip (s) of
    the link to the node `next`."""

    name: str
    boot: str
    cores: int
    copied: Sniffed
    multiplied: Sniffed
    next: str
    rate: Sniffed | None
    trip: Sniffed | None


class Sniff(RecordPart):
    """The sniff test of an allocation's nodes before the experiment. `job`: the batch job; empty: there is none."""

    schema_version: Literal[1] = 1
    cluster: str
    job: str
    taken_at: str = Field(description="UTC, ISO 8601")
    nodes: list[SniffedNode]
