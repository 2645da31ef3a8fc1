"""The compared arms: every transport at 2 and 4 ranks, all-reduce and transfer, over four sizes; a transport that
provides memory of its own also on plain buffers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from scaleproof.spec import registry
from scaleproof.spec.case import CollectiveCase, TransferCase, parse_case
from scaleproof.spec.common_case import NATIVE

SIZES = (1 << 10, 64 << 10, 1 << 20, 64 << 20)
RANKS = (2, 4)
ALGORITHM = "halving_doubling"
"""For the point-to-point transports: fewest rounds, and as few bytes as a ring. With 2 ranks both are the same
messages."""
ITERATIONS = 10
WARMUP = 2


@dataclass(frozen=True, slots=True)
class Arm:
    """One line of the table: name, number of ranks, operation."""

    name: str
    ranks: int
    operation: str


BOUND = "bound"
PLAIN = ", plain buffers"
"""Behind the name of a transport: the arm whose buffers lie outside of the transport's memory."""
RING_OVER_GRPC = "TensorFlow RING over gRPC"
TENSORFLOW_GRPC = "TensorFlow gRPC"


def transport_arms() -> dict[Arm, CollectiveCase | TransferCase]:
    """Arms that are launches of the harness, with their cases."""
    arms: dict[Arm, CollectiveCase | TransferCase] = {}
    for name in registry.names("transport"):
        entry = registry.get("transport", name)
        ways = ("registered", "plain") if entry.own_memory else ("registered",)
        for ranks, buffers in product(RANKS, ways):
            label = name if buffers == "registered" else f"{name}{PLAIN}"
            common = {
                "suite": "bench",
                "experiment": "transports",
                "arm": label,
                "transport": name,
                "buffers": buffers,
                "ranks": ranks,
                "launcher": entry.launcher,
                "sizes": SIZES,
                "iterations": ITERATIONS,
                "warmup": WARMUP,
            }
            lifted = ALGORITHM if entry.point_to_point else NATIVE
            arms[Arm(label, ranks, "all_reduce")] = _collective(
                {**common, "program": "collective", "collective": lifted}
            )
            if entry.sends:
                arms[Arm(label, ranks, "transfer")] = _transfer({**common, "program": "transfer"})
    return arms


def _collective(values: dict[str, object]) -> CollectiveCase:
    case = parse_case(values)
    assert isinstance(case, CollectiveCase)
    return case


def _transfer(values: dict[str, object]) -> TransferCase:
    case = parse_case(values)
    assert isinstance(case, TransferCase)
    return case
