"""NCCL's constants of published.yaml, beside those that the model of NCCL uses."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from scaleproof.claims.arithmetic import Arguments, Published
from scaleproof.claims.metrics import Metric
from scaleproof.simulate.nccl.constants import NETWORK_GB_PER_GBIT, NVLINK_GB_PER_S
from scaleproof.spec.gpu_node import gpu_node
from scaleproof.spec.registry import nearest

USED: dict[str, float] = {
    "SM70_NVLINK_BW": NVLINK_GB_PER_S["volta"],
    "PCI_BW": float(gpu_node("v100pcie4").pcie_gb_per_s or 0.0),
    "NET_BW": 100 * NETWORK_GB_PER_GBIT,
}
"""GB/s, by NCCL's names; NET_BW is of 100 Gbit/s, PCI_BW of 16 lanes of PCIe 3."""


def _is_used(name: str) -> str:
    if name not in USED:
        raise ValueError(f"the model of NCCL does not use {name!r}; {nearest(name, list(USED))}")
    return name


class Constant(Arguments):
    """A constant of NCCL."""

    constant: Annotated[str, AfterValidator(_is_used), Field(description="Its name in src/graph/topo.h.")]


class Nothing(Arguments):
    """All constants that the model uses."""


def nccl_constant(x: Constant, rows: Published) -> float:
    """A constant of NCCL as [the model](../nccl.md) of suite gpu_collectives uses it, per link and direction (of a
    network: 100 Gbit/s). No launches."""
    return USED[x.constant]


def nccl_constants_off(x: Nothing, rows: Published) -> float:
    """Constants of NCCL in published.yaml that [the model](../nccl.md) uses with another value. No launches."""
    published = {row.x["constant"]: row.value for row in rows.values() if "constant" in row.x}
    return float(sum(published[name] != value for name, value in USED.items()))


METRICS = [
    Metric("nccl_constant", "GB/s", None, model=nccl_constant, x=Constant),
    Metric("nccl_constants_off", "constants", "lower", model=nccl_constants_off, x=Nothing),
]
