"""Node types with GPUs (clusters/gpu_nodes.yaml) and the GPUs in them (clusters/gpus.yaml), and what a rank computes
with on a node of any type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from scaleproof.spec.cluster import GPU_NODE_TYPES, GPUS, NODE_TYPES, ROOT, StatedJitter, node_types
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import read_document
from scaleproof.spec.messages import form_error
from scaleproof.spec.registry import nearest

FILE, GPU_FILE = ROOT / GPU_NODE_TYPES, ROOT / GPUS
Entry = TypeVar("Entry", bound="_Form")
Architecture = Literal["volta", "ampere", "hopper", "blackwell"]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Gpu(_Form):
    """What a GPU computes at its peak, the share of it that trainings reach, and where both are said."""

    summary: str
    tflops: PositiveFloat = Field(description="Peak rate of dense products of floats with `bits`, TFLOP/s.")
    bits: Literal[16, 32] = Field(16, description="Of the floats that are multiplied; sums have 32.")
    efficiency: Annotated[list[PositiveFloat], Field(min_length=2, max_length=2)] = Field(
        description="[low, high]: shares of the peak rate that trainings reach."
    )
    source: str

    @model_validator(mode="after")
    def _ordered(self) -> Gpu:
        low, high = self.efficiency
        if not low <= high <= 1:
            raise ValueError("efficiency: write [low, high], low at most high, high at most 1")
        return self


class Host(_Form):
    """The processor of a node, on which messages and servers run."""

    cores: PositiveInt
    ghz: PositiveFloat


class GpuNode(_Form):
    """A node with GPUs. Rates are those that NCCL counts, in GB/s (10^9 B/s) per direction."""

    summary: str
    gpus: PositiveInt
    gpu: str | None = Field(None, description="Which GPU, by its name in clusters/gpus.yaml; null: not said.")
    host: Host | None = Field(None, description="Cores and clock of its processor; null: not said.")
    architecture: Architecture | None = Field(
        None,
        description="Of its GPUs; NCCL's constants depend on it. null: the model of NCCL does not know them.",
    )
    nvlinks: NonNegativeInt = Field(0, description="NVLinks of each GPU; 0: its GPUs are connected by PCIe.")
    links: dict[str, PositiveInt] | None = Field(
        None, description="NVLinks between pairs of GPUs, as `0-1: 2`; null: all links of every GPU go to a switch."
    )
    pcie_gb_per_s: PositiveFloat | None = Field(None, description="Of each GPU, where there is no NVLink.")
    network_gbit: PositiveFloat | None = Field(None, description="Of all network cards of the node, Gbit/s.")
    network_cards: PositiveInt = Field(1, description="Network cards that have this rate together.")
    jitter: StatedJitter | None = Field(None, description="How unevenly ranks compute; null: evenly.")
    source: str

    @model_validator(mode="after")
    def _connected(self) -> GpuNode:
        inside = self.nvlinks or self.links or self.pcie_gb_per_s
        if inside and self.architecture is None:
            raise ValueError("links inside are for the model of NCCL, which needs architecture")
        if not self.nvlinks and self.pcie_gb_per_s is None and self.architecture is not None:
            raise ValueError("a node without NVLinks needs pcie_gb_per_s")
        for pair, count in self.pairs().items():
            if not 0 <= pair[0] < pair[1] < self.gpus:
                raise ValueError(
                    f"links: {pair[0]}-{pair[1]}: {count}: give two of GPUs 0 to {self.gpus - 1}, the smaller first"
                )
        return self

    def pairs(self) -> dict[tuple[int, int], int]:
        """NVLinks by pair of GPUs; empty with a switch."""
        found = {}
        for name, count in (self.links or {}).items():
            first, _, second = name.partition("-")
            if not (first.isdigit() and second.isdigit()):
                raise ValueError(f"links: {name!r} is no pair of GPUs; write 0-1")
            found[int(first), int(second)] = count
        return found


@cache
def gpu_nodes(file: Path = FILE) -> dict[str, GpuNode]:
    """Every node type of the file, by name. Raises SpecError with file and line."""
    nodes = _entries(file, GpuNode, "node types")
    for name, node in nodes.items():
        if node.gpu is not None and node.gpu not in gpus():
            advice = nearest(node.gpu, list(gpus()))
            raise read_document(file).error((name, "gpu"), f"{node.gpu!r} is not in clusters/{GPUS}; {advice}")
    return nodes


@cache
def gpus(file: Path = GPU_FILE) -> dict[str, Gpu]:
    """Every GPU of the file, by name. Raises SpecError with file and line."""
    return _entries(file, Gpu, "GPUs")


def _entries(file: Path, form: type[Entry], what: str) -> dict[str, Entry]:
    document = read_document(file)
    if not isinstance(document.data, dict):
        raise document.error((), f"empty or no mapping of {what} by name")
    entries = {}
    for name, fields in document.data.items():
        try:
            entries[name] = form.model_validate(fields)
        except ValidationError as failed:
            raise form_error(document, (name,), form, failed) from None
    return entries


def gpu_node(name: str) -> GpuNode:
    """By name; SpecError names the nearest one."""
    known = gpu_nodes()
    if name not in known:
        raise SpecError(f"unknown node type {name!r} in clusters/{FILE.name}; {nearest(name, list(known))}")
    return known[name]


def gpu_of(name: str) -> Gpu:
    """The GPU of a node type. Raises SpecError where the file does not say it."""
    node = gpu_node(name)
    if node.gpu is None:
        raise SpecError(f"clusters/{FILE.name}: {name}: gpu: missing; its peak rate is not known without it")
    return gpus()[node.gpu]


_cpu_nodes = cache(node_types)


def stated_jitter(name: str | None) -> StatedJitter | None:
    """How unevenly ranks compute on a node type; None where its file does not say it, and for an unknown one."""
    if name is None:
        return None
    known = _cpu_nodes()
    node = known[name] if name in known else gpu_nodes().get(name)
    return None if node is None else node.jitter


@dataclass(frozen=True, slots=True)
class RankType:
    """What a rank computes with: the cores of a node together, or a GPU, which counts as one. `peak_flops`: FLOP/s."""

    summary: str
    peak_flops: float
    source: str
    cores: int = 1


def rank_type(name: str) -> RankType:
    """What a rank computes with on a node type: the whole node, or one of its GPUs. Raises SpecError, with the nearest
    name, for an unknown node type."""
    known = _cpu_nodes()
    if name in known:
        node = known[name]
        return RankType(node.summary, node.peak_flops, node.source, node.cores)
    if name not in gpu_nodes():
        advice = nearest(name, [*known, *gpu_nodes()])
        raise SpecError(f"unknown node type {name!r} in clusters/{NODE_TYPES} and {FILE.name}; {advice}")
    gpu = gpu_of(name)
    return RankType(f"one {gpu.summary}", gpu.tflops * 1e12, gpu.source)


def host_of(name: str | None) -> Host | None:
    """The processor of a node type, with GPUs or without; None where it is not known."""
    known = _cpu_nodes()
    if name in known:
        return Host(cores=known[name].cores, ghz=known[name].ghz)
    return gpu_nodes()[name].host if name in gpu_nodes() else None
