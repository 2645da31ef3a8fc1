"""Node types with GPUs (clusters/gpu_nodes.yaml)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

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

from scaleproof.spec.cluster import GPU_NODE_TYPES, ROOT
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import read_document
from scaleproof.spec.messages import form_error
from scaleproof.spec.registry import nearest

FILE = ROOT / GPU_NODE_TYPES
Architecture = Literal["volta", "ampere", "hopper", "blackwell"]


class GpuNode(BaseModel):
    """A node with GPUs. Rates are those that NCCL counts, in GB/s (10^9 B/s) per direction."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    summary: str
    gpus: PositiveInt
    architecture: Architecture
    nvlinks: NonNegativeInt = Field(description="NVLinks of each GPU; 0: its GPUs are connected by PCIe.")
    links: dict[str, PositiveInt] | None = Field(
        None, description="NVLinks between pairs of GPUs, as `0-1: 2`; null: all links of every GPU go to a switch."
    )
    pcie_gb_per_s: PositiveFloat | None = Field(None, description="Of each GPU, where there is no NVLink.")
    network_gbit: PositiveFloat | None = Field(None, description="Of all network cards of the node, Gbit/s.")
    source: str

    @model_validator(mode="after")
    def _connected(self) -> GpuNode:
        if not self.nvlinks and self.pcie_gb_per_s is None:
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
    document = read_document(file)
    if not isinstance(document.data, dict):
        raise document.error((), "empty or no mapping of node types by name")
    nodes = {}
    for name, fields in document.data.items():
        try:
            nodes[name] = GpuNode.model_validate(fields)
        except ValidationError as failed:
            raise form_error(document, (name,), GpuNode, failed) from None
    return nodes


def gpu_node(name: str) -> GpuNode:
    """By name; SpecError names the nearest one."""
    known = gpu_nodes()
    if name not in known:
        raise SpecError(f"unknown node type {name!r} in clusters/{FILE.name}; {nearest(name, list(known))}")
    return known[name]
