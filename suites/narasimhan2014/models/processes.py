"""Several processes: what an iteration takes, and whether all find what one does."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase

from .variants import ORIGINAL, made, names_of, notes, seconds

ITERATIONS = 1000.0
"""Of a made-up launch."""


def base_of(case: AnyCase) -> str:
    """The variant whose time is looked at: without shrinking, if there is one."""
    names = names_of(case)
    if not names:
        raise ImpossibleValue("the case trains no machine")
    return ORIGINAL if ORIGINAL in names else names[0]


def solver_iteration_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean time of an iteration, in s (suite narasimhan2014).

    solver_iteration_s = time without shrinking / iterations

    Of the first variant where the case has none without shrinking; then with its reconstructions.
    """
    if not names_of(record.case):
        return None
    name, times, counts = base_of(record.case), seconds(record, samples), notes(record, samples, "iterations")
    return times[name] / counts[name] if name in times and counts.get(name) else None


def alone_s(record: Record, samples: pd.DataFrame, name: str) -> tuple[float, float] | None:
    """What rank 0 took for a variant by itself, s, and the kernel elements of that."""
    rows = columns(record, samples)
    chosen = [row for row in rows.of("alone") if rows.step[row] == names_of(record.case).index(name)]
    if not chosen or not times_count(record):
        return None
    return float(rows.end[chosen[0]] - rows.start[chosen[0]]) / SECOND, float(rows.value[chosen[0]])


def processes_speedup(record: Record, samples: pd.DataFrame) -> float | None:
    """How many times faster all ranks are than rank 0 alone on the same samples (suite narasimhan2014).

    processes_speedup = time of rank 0 alone / time of all ranks, without shrinking, in one launch

    Rank 0 solves once more by itself after the timed region, while the others wait at a barrier. Below 1 the processes
    are slower than one.
    """
    if not names_of(record.case):
        return None
    name, times = base_of(record.case), seconds(record, samples)
    alone = alone_s(record, samples, name)
    return alone[0] / times[name] if alone and name in times else None


def alpha_apart(record: Record, samples: pd.DataFrame) -> float | None:
    """Largest distance of alpha of any sample from that which one process finds, over variants (suite narasimhan2014).

    alpha_apart = largest over variants and samples of | alpha of all ranks - alpha of rank 0 alone |

    0 where both go through the same iterations.
    """
    return max(notes(record, samples, "apart").values(), default=None)


def _made_up_iteration(wanted: Wanted) -> MadeUp:
    name = base_of(wanted.case)
    took = {name: possible(wanted.known) * ITERATIONS}
    return made(wanted.case, {"iterations": {name: ITERATIONS}}, {"solve": took})


def _made_up_speedup(wanted: Wanted) -> MadeUp:
    name = base_of(wanted.case)
    all_ranks = made(wanted.case, {}, {"solve": {name: 1.0}})
    alone = Event("alone", 0.0, possible(wanted.known), (0,), names_of(wanted.case).index(name), value=1.0)
    return MadeUp((*all_ranks.events, alone))


def _made_up_apart(wanted: Wanted) -> MadeUp:
    return made(wanted.case, {"apart": {base_of(wanted.case): wanted.known}})


METRICS = [
    Metric("solver_iteration_s", "s", "lower", launch=solver_iteration_s, made_up=_made_up_iteration),
    Metric("processes_speedup", "x", "higher", launch=processes_speedup, clocked=True, made_up=_made_up_speedup),
    Metric("alpha_apart", "1", "lower", launch=alpha_apart, made_up=_made_up_apart),
]
