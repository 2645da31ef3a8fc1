"""From which size on a ring is faster than recursive doubling: measured, beside what the formulas say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from scaleproof.claims.beyond_floor import FloorRange
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric

from . import timings
from .formulas import Costs, is_power_of_2, ring
from .timings import LINE

SLOPE = 0.3
"""Of made-up calls: the exponent by which recursive doubling loses against the ring, as on the links of `calls`."""


def predicted(p: int, costs: Costs) -> float | None:
    """Bytes at which both formulas agree; None where recursive doubling is never slower, or always."""
    rounds = math.floor(math.log2(p)) + (0 if is_power_of_2(p) else 2)
    latencies, loads = 2 * (p - 1) - rounds, rounds - 2 * (p - 1) / p
    return latencies * costs.a / (loads * costs.b) if latencies > 0 and loads > 0 and costs.a and costs.b else None


def measured(doubling: Mapping[int, float], ringed: Mapping[int, float], factor: float = 1.0) -> float | None:
    """Bytes at which `factor` times the time of recursive doubling is that of the ring, between two sizes on a line of
    the logarithms. The smallest size where the ring is never slower, the largest where it is never faster."""
    sizes = sorted(doubling.keys() & ringed.keys())
    if len(sizes) < 2:
        return None
    ratios = [math.log(factor * doubling[n] / ringed[n]) for n in sizes]
    if ratios[0] >= 0:
        return float(sizes[0])
    for (n, low), (above, high) in zip(
        zip(sizes, ratios, strict=True), zip(sizes[1:], ratios[1:], strict=True), strict=False
    ):
        if high >= 0:
            return n * (above / n) ** (-low / (high - low))
    return float(sizes[-1])


def crossover_ratio(launches: Sequence[Launch], floor: float | None = None) -> FloorRange | None:
    """Size from which a ring is faster than recursive doubling, over the size that the formulas predict.

    crossover_ratio = measured size / predicted size, of one repetition of both all-reduces

    The measured size lies where the times of both are equal, on a line of logarithms between two sizes of the case. A
    crossing below the smallest size counts as the smallest, one above the largest as the largest. The predicted size is
    that at which both formulas agree, with the means of a and b of the ping-pongs in both launches:
    (2 (p - 1) - r) a / ((r - 2 (p - 1) / p) b), where r is lg p, or MPICH's floor(lg p) + 2 for other p. The noise
    floor is a factor of the ratio of both times. Suite: collectives.
    """
    arms = {each.record.case.collective: each for each in launches}
    both = [arms.get(name) for name in ("recursive_doubling", "ring")]
    fitted = [timings.costs(each.record, each.samples) for each in both if each is not None]
    if len(fitted) < 2 or None in fitted:
        return None
    mean = Costs(*(fmean(getattr(costs, name) for costs in fitted) for name in ("a", "b")))
    expected = predicted(launches[0].record.case.ranks, mean)
    if expected is None:
        return None
    doubling, ringed = (timings.calls(each.record, each.samples) for each in both if each is not None)
    apart = 1 + (floor or 0.0)
    found = [measured(doubling, ringed, factor) for factor in (1.0, apart, 1 / apart)]
    sizes = [size / expected for size in found if size is not None]
    return FloorRange(*sizes) if len(sizes) == len(found) else None


def made_up(wanted: Wanted) -> MadeUp:
    """A block in which the ring takes what its formula says, and recursive doubling crosses it at so many times the
    predicted size."""
    case, sizes = wanted.case, wanted.case.value("sizes")
    crossing = possible(wanted.known, 1e-9) * (predicted(case.ranks, LINE) or 0.0)
    if not min(sizes) <= crossing <= max(sizes):
        raise ImpossibleValue("a crossover beyond the sizes")
    slower = {n: (n / crossing) ** SLOPE if case.collective == "recursive_doubling" else 1.0 for n in sizes}
    return timings.made_up({n: ring(case.ranks, n, LINE) * slower[n] for n in sizes}, sizes)


METRICS = [
    Metric(
        "crossover_ratio",
        "x",
        None,
        block=crossover_ratio,
        clocked=True,
        noise_of=("call_s",),
        noise="inside",
        made_up=made_up,
        range=(0, math.inf),
    ),
]
