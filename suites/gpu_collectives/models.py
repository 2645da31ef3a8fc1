"""Metrics of suite gpu_collectives: what NCCL's collectives take on node types, predicted, beside public logs."""

from __future__ import annotations

from itertools import combinations
from statistics import median
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from scaleproof.claims.arithmetic import Arguments, Published
from scaleproof.claims.claim_form import Form
from scaleproof.claims.metrics import Metric
from scaleproof.simulate.nccl.prediction import Collective, Way, architecture_of, predict
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import gpu_node

PLATEAU_NBYTES = 64 << 20
MICRO = 1e6


def _is_machine(name: str) -> str:
    """Raises ValueError, with the nearest name, for a node type that is not known or not modelled."""
    try:
        architecture_of(gpu_node(name))
    except SpecError as error:
        raise ValueError(str(error)) from None
    return name


Machine = Annotated[str, AfterValidator(_is_machine), Field(description="A node type of clusters/gpu_nodes.yaml.")]
Nodes = Annotated[int, Field(ge=1, le=4096, description="Equal nodes, all of whose GPUs take part.")]
Nbytes = Annotated[int, Field(ge=1, le=10**15, description="Bytes of the whole array, as nccl-tests counts it.")]
Called = Annotated[Collective, Field(description="The collective, by its name in nccl-tests.")]


class _OfNodes(Form):
    """A machine, and on how many nodes."""

    machine: Machine
    nodes: Nodes

    @model_validator(mode="after")
    def _connected(self) -> Self:
        if self.nodes > 1 and gpu_node(self.machine).network_gbit is None:
            raise ValueError(f"nodes: {self.machine} has no network_gbit, which several nodes need")
        return self


class Call(_OfNodes, Arguments):
    """One call of nccl-tests."""

    collective: Called
    nbytes: Nbytes
    algorithm: Literal["ring", "tree"] | None = Field(None, description="As NCCL_ALGO sets it; null: NCCL chooses.")


class Logged(_OfNodes):
    """What a published row's `x` has."""

    collective: Called
    bytes: Nbytes
    algorithm: str = Field("", description="What the log says of it.")

    @property
    def call(self) -> Call:
        """The call. A log that says `ring` has set the ring."""
        ring: Literal["ring"] | None = "ring" if self.algorithm.startswith("ring") else None
        return Call(
            machine=self.machine, collective=self.collective, nodes=self.nodes, nbytes=self.bytes, algorithm=ring
        )


class Nothing(Arguments):
    """All gated rows."""


def nccl_busbw(x: Call, rows: Published) -> float:
    """Bus bandwidth of one collective call, as nccl-tests states it, predicted by a model of NCCL.

        busbw = nbytes / time * factor;  time = latency + nbytes / algbw, of the algorithm and protocol that NCCL takes

    The factor is 2 (n - 1) / n for an all-reduce, (n - 1) / n for all-gather, reduce-scatter and all-to-all, else 1
    (NVIDIA/nccl-tests@a0b82b22, doc/PERFORMANCE.md). Arithmetic, no launches. The row's `x` has machine, collective,
    nodes, nbytes, and the algorithm where the log sets one.
    """
    return predicted(x).busbw(x.collective, gpu_node(x.machine).gpus * x.nodes)


def nccl_time(x: Call, rows: Published) -> float:
    """Time of one collective call in microseconds, predicted as for [nccl_busbw](nccl_busbw.md). Arithmetic, no
    launches."""
    return predicted(x).seconds * MICRO


def nccl_plateau_error(x: Nothing, rows: Published) -> float:
    """Median over all gated rows of 64 MiB and more of |predicted busbw / published busbw - 1|. Arithmetic, no
    launches."""
    return median(abs(nccl_busbw(row.call, rows) / rows.positive(name) - 1) for name, row in plateau(rows).items())


def nccl_pairs_reversed(x: Nothing, rows: Published) -> float:
    """Pairs of machines whose order by busbw the prediction reverses: all-reduce, each machine's largest gated array,
    of logs with equally many nodes, where the published values differ by more than 10 %. Arithmetic, no launches."""
    largest: dict[tuple[str, int], str] = {}
    logged = {name: row for name, row in plateau(rows).items() if row.collective == "allreduce"}
    for name, row in logged.items():
        key = row.machine, row.nodes
        if key not in largest or row.bytes >= logged[largest[key]].bytes:
            largest[key] = name
    reversed_pairs = 0
    for (one, first), (other, second) in combinations(largest.items(), 2):
        published = rows.positive(first) / rows.positive(second)
        if one[1] == other[1] and max(published, 1 / published) > 1.1:
            ours = nccl_busbw(logged[first].call, rows) / nccl_busbw(logged[second].call, rows)
            reversed_pairs += (ours > 1) != (published > 1)
    return float(reversed_pairs)


def predicted(x: Call) -> Way:
    """The way that NCCL takes."""
    return predict(gpu_node(x.machine), x.collective, x.nodes, x.nbytes, x.algorithm)


def plateau(rows: Published) -> dict[str, Logged]:
    """Gated rows of bus bandwidth of 64 MiB and more, by id."""
    logged = {row.id: rows.conditions(row.id, Logged) for row in rows.values() if row.gate and row.metric == "busbw"}
    return {name: row for name, row in logged.items() if row.bytes >= PLATEAU_NBYTES}


METRICS = [
    Metric("nccl_busbw", "GB/s", "higher", model=nccl_busbw, x=Call),
    Metric("nccl_time", "us", "lower", model=nccl_time, x=Call),
    Metric("nccl_plateau_error", "fraction", "lower", model=nccl_plateau_error, x=Nothing),
    Metric("nccl_pairs_reversed", "pairs", "lower", model=nccl_pairs_reversed, x=Nothing),
]
