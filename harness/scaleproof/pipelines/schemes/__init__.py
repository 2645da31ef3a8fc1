"""Schemes of pipelines, one file each, which lists them as SCHEMES."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from scaleproof.core.collection_paused import collection_paused
from scaleproof.pipelines.schedule import Schedule
from scaleproof.pipelines.scheme import Scheme
from scaleproof.pipelines.timing import PassTimes, timeline
from scaleproof.spec.errors import SpecError
from scaleproof.spec.registry import nearest


@cache
def schemes() -> dict[str, Scheme]:
    """All of this folder's, by name."""
    files = sorted(each.name for each in pkgutil.iter_modules(__path__))
    listed = [importlib.import_module(f"{__name__}.{file}").SCHEMES for file in files]
    return {scheme.name: scheme for each in listed for scheme in each}


@collection_paused()
def schedule_of(name: str, stages: int, micro_batches: int, pairs: int = 1) -> Schedule:
    """`micro_batches`: of one iteration. `pairs`: of pipelines in opposite directions. SpecError, with what would do,
    where they do not fit."""
    known = schemes()
    if name not in known:
        raise SpecError(f"unknown scheme {name!r}; {nearest(name, list(known))}")
    for what, count in (("stage", stages), ("micro-batch", micro_batches), ("pair of pipelines", pairs)):
        if count < 1:
            raise SpecError(f"{name}: {count}: give at least one {what}")
    if known[name].has_pairs:
        return known[name].make(stages, micro_batches, pairs)
    if pairs > 1:
        raise SpecError(f"{name} has no {pairs} pairs of pipelines; leave them out")
    return known[name].make(stages, micro_batches)


def iteration_time(name: str, stages: int, micro_batches: int, times: PassTimes, pairs: int = 1) -> float:
    """Of one iteration among many: the makespan where each ends with a flush, else what one more iteration adds."""
    schedule = schedule_of(name, stages, micro_batches, pairs)
    if schedule.flush:
        return timeline(schedule, times).makespan
    first, second = (schedule_of(name, stages, count * micro_batches, pairs) for count in (stages, stages + 1))
    return timeline(second, times).makespan - timeline(first, times).makespan
