"""Options of entry `mapreduce`, checked before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suite_programs.map_reduce import JOBS, KILLED

from scaleproof.spec.case import OwnCase
from scaleproof.spec.registry import nearest

ALL_REDUCE = "all_reduce"


@dataclass(frozen=True, slots=True)
class Options:
    """`sizes`: units of each layer; `workers`: on so many ranks, the last ones (0: Spark in one process)."""

    sizes: tuple[int, ...]
    images: int
    maps: int
    reducers: int
    decimals: int
    workers: int
    jobs: tuple[str, ...]


def options_of(case: OwnCase) -> Options:
    """ValueError says in one line which option cannot be run, and why."""
    of = case.options
    sizes, jobs = layer_sizes(str(of["layers"])), tuple(str(of["jobs"]).split())
    images, maps, reducers = (_at_least(1, name, of[name]) for name in ("images", "maps", "reducers"))
    decimals, workers = (_at_least(0, name, of[name]) for name in ("decimals", "workers"))
    if images % maps:
        raise ValueError(f"options.images: {images} images do not divide into {maps} maps of the same number")
    check_jobs(jobs, case.ranks, workers)
    return Options(sizes, images, maps, reducers, decimals, workers, jobs)


def layer_sizes(text: str) -> tuple[int, ...]:
    """Units of each layer; ValueError says what a text lacks."""
    parts = text.split("-")
    if len(parts) < 2 or not all(part.isdecimal() and int(part) for part in parts):
        raise ValueError(f"options.layers: {text!r} is no list of layers; write the units of each, as 64-100-30")
    return tuple(int(part) for part in parts)


def check_jobs(jobs: Sequence[str], ranks: int, workers: int) -> None:
    """ValueError for what cannot be run."""
    known = [ALL_REDUCE, *JOBS]
    for job in jobs:
        if job not in known:
            raise ValueError(f"options.jobs: unknown job {job!r}; {nearest(job, known)}")
    if not 0 <= workers <= ranks:
        raise ValueError(f"options.workers: {workers} is not between 0 (none: Spark in one process) and {ranks} ranks")
    if KILLED in jobs and (workers < 2 or jobs[-1] != KILLED):
        raise ValueError(f"options.jobs: {KILLED!r} ends one of at least two workers, and is the last job")


def _at_least(least: int, name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"options.{name}: {value!r} is no whole number from {least} on")
    return value
