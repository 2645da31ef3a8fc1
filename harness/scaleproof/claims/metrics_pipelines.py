"""Metrics of pipelines: how long workers are idle, what they hold, and whether they compute what one process does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, TrainCase

IDLE_LEVEL_POINTS = """
    idle_level_points = median over cases of | pipeline_idle at one level of evidence - at another |

    As [level_error](level_error.md), but the difference itself: 0.03 is 3 points of [pipeline_idle](pipeline_idle.md).
    The noise floor of pipeline_idle, a share of it, is added as if it were points, which are at most as many.
    """


def pipeline_idle(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of their steps in which ranks of a pipeline compute nothing.

    pipeline_idle = 1 - timed forward, backward and update of all ranks / their timed steps

    The literature calls it bubble ratio; messages and the exchange of gradients are in it.
    """
    rows = columns(record, samples)
    steps = rows.timed("step")
    if not len(steps) or not times_count(record) or not _divides(record.case):
        return None
    busy = rows.timed("forward", "backward", "update")
    return 1 - float((rows.end[busy] - rows.start[busy]).sum() / (rows.end[steps] - rows.start[steps]).sum())


def parameter_difference(record: Record, samples: pd.DataFrame) -> float | None:
    """Largest difference of a parameter from that of one process that trains with the same micro-batches (suite
    chimera2021).

    parameter_difference = max |parameter of the pipeline - parameter of one process|, after the last step

    Of cases with option `compare`.
    """
    rows = columns(record, samples)
    found = rows.value[rows.of("difference")]
    return float(found[0]) if len(found) else None


def resident_peak(record: Record, samples: pd.DataFrame) -> float | None:
    """The most resident memory that any rank had, in MiB, with libraries and everything before the first step.

    resident_peak = max over ranks of ru_maxrss (getrusage(2))
    """
    found = [rank.facts["peak_memory_mib"] for rank in record.ranks if "peak_memory_mib" in rank.facts]
    return float(max(found)) if found else None


def most_activations(record: Record, samples: pd.DataFrame) -> float | None:
    """The most micro-batches whose activations a rank holds.

    most_activations = largest value of event `activations`, which a rank notes at the end of each step

    Counted by the strategy itself: micro-batches between their forward and their backward pass.
    """
    return _held(record, samples, max)


def fewest_activations(record: Record, samples: pd.DataFrame) -> float | None:
    """The same of the rank that holds the fewest at most."""
    return _held(record, samples, min)


def _held(record: Record, samples: pd.DataFrame, which: Callable[[list[float]], float]) -> float | None:
    rows = columns(record, samples)
    found = rows.timed("activations")
    if not len(found):
        return None
    return which([float(rows.value[found[rows.rank[found] == rank]].max()) for rank in np.unique(rows.rank[found])])


def _divides(case: AnyCase) -> bool:
    """Whether its ranks hold stages of the network."""
    return isinstance(case, TrainCase) and case.replicas is not None and case.replicas.division is not None


def made_up_difference(wanted: Wanted) -> MadeUp:
    """A launch that ended so far from one process."""
    _of_pipeline(wanted)
    return events(Event("difference", ranks=(0,), value=possible(wanted.known)))


def made_up_idle(wanted: Wanted) -> MadeUp:
    """A launch whose ranks compute for the rest of a step."""
    _of_pipeline(wanted)
    return _idle(possible(wanted.known, 0.0, 1.0))


def _idle(share: float) -> MadeUp:
    return events(Event("step", 0.0, 1.0), Event("forward", 0.0, 1.0 - share))


def made_up_activations(wanted: Wanted) -> MadeUp:
    """A launch whose ranks all hold so many."""
    _of_pipeline(wanted)
    return events(Event("activations", value=possible(wanted.known)))


def _of_pipeline(wanted: Wanted) -> None:
    if not _divides(wanted.case):
        raise ImpossibleValue("the strategy of this case is no pipeline")
