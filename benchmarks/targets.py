"""What `make bench` wants of our transports, and rates that cannot be: above the bound of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.arms import BOUND, PLAIN, RING_OVER_GRPC, Arm
from benchmarks.interleaved import Measured, median_rate, rate
from benchmarks.launches import BOUNDS, PLAIN_BOUND, bound_of
from benchmarks.outcome import outcome
from scaleproof.spec.units import format_bytes
from scaleproof.stats.bootstrap import ratio, ratio_interval
from scaleproof.stats.intervals import median_interval

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Target:
    """Two arms at one size, and the ratio of their rates that the first must reach."""

    arm: Arm
    size: int
    against: Arm
    factor: float


def _two(name: str) -> Arm:
    return Arm(name, 2, "all_reduce")


TARGETS = (
    Target(_two("shm"), 64 * MIB, _two("gloo"), 4),
    Target(_two("shm"), 64 * MIB, _two("mpi"), 3),
    Target(_two("shm"), 64 * MIB, _two(BOUND), 0.9),
    Target(_two(f"shm{PLAIN}"), 64 * MIB, _two(PLAIN_BOUND), 0.85),
    Target(_two(f"shm{PLAIN}"), 64 * MIB, _two("gloo"), 4),
    Target(_two("shm"), MIB, _two("gloo"), 5),
    Target(_two("tcp"), 64 * MIB, _two("gloo"), 1.2),
    Target(_two("grpc"), 64 * MIB, _two(RING_OVER_GRPC), 1),
)


def target_row(measured: Measured, target: Target) -> dict[str, Any]:
    """A target, the ratio reached with its interval, and the outcome."""
    ours, theirs = measured.seconds(target.arm, target.size), measured.seconds(target.against, target.size)
    common = {
        "arm": target.arm.name,
        "against": target.against.name,
        "nbytes": target.size,
        "ranks": target.arm.ranks,
        "wanted": target.factor,
    }
    if not ours or not theirs:
        return {**common, "ratio": None, "low": None, "high": None, "outcome": "not measured"}
    if target.against in BOUNDS:
        reached, low, high = share_of_bound(ours, min(theirs))
    else:
        interval, reached = ratio_interval(theirs, ours), ratio(theirs, ours)
        low, high = (interval.low, interval.high) if interval else (None, None)
    return {**common, "ratio": reached, "low": low, "high": high, "outcome": outcome(low, high, target.factor)}


def share_of_bound(seconds: list[float], bound_s: float) -> tuple[float, float | None, float | None]:
    """The bound's seconds over the median of the launches, with its interval over the launches: the bound is one
    number, the best of all."""
    interval = median_interval(seconds)
    low, high = (bound_s / interval.high, bound_s / interval.low) if interval else (None, None)
    return median_rate(seconds, 1) * bound_s, low, high


def of_bound(measured: Measured, arm: Arm, size: int) -> float | None:
    """The rate of an arm over that of its bound; None where it has no bound, or one of both was not measured."""
    bound = bound_of(arm)
    if bound is None or not measured.seconds(arm, size) or not measured.seconds(bound, size):
        return None
    return rate(measured, arm, size) / rate(measured, bound, size)


def above_bound(measured: Measured, arm: Arm, size: int) -> str:
    """Why the rate of an arm is impossible; empty if it is not above the bound, or has none."""
    share = of_bound(measured, arm, size)
    if share is None or share <= 1:
        return ""
    return (
        f"impossible: {arm.name} with {arm.ranks} ranks moves {format_bytes(size)} at "
        f"{rate(measured, arm, size) / 1e9:.3g} GB/s, {share:.2f} of the bound: the measurement of the bound is wrong"
    )
