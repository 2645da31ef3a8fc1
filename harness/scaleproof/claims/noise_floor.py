"""What limits a comparison on the machine of the records: its noise floor, and launches with more threads than
cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_pool import Pool
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.claims.notes import Note, NoteCode, SideName, note
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.record.machine import MachineProfile, read_profile
from scaleproof.stats.summary import outliers

_SAME_TIME = {"algbw": "collective_latency", "busbw": "collective_latency", "transfer_bandwidth": "transfer_latency"}
"""Bandwidths are a constant divided by a time, so that both have the same floor."""


def base_metric(metric: Metric) -> Metric:
    """The metric of single launches that a ratio is made of; the metric itself where it is no ratio."""
    return METRICS[metric.ratio_of] if metric.ratio_of else metric


def floor_of(
    results: Path, metric: Metric, pool: Pool, select: Mapping[str, Any], evidence: Evidence, nbytes: int | None
) -> float | None:
    """The noise floor as a share; None where the metric is no timing, the machine's profile has none for it, or the
    launches are simulated: a prediction has no noise of a machine.

    SpecError: the profile cannot be read.
    """
    launches = pool.launches(select, evidence)
    profile = _profile(results, pool)
    if not metric.timing or profile is None or not launches or evidence == "simulated":
        return None
    name, program = metric.noise_of or base_metric(metric).name, launches[0].record.case.program
    floor = profile.floor(name, program, nbytes) or profile.floor(_SAME_TIME.get(name, name), program, nbytes)
    return floor.share if floor else None


def not_covered(results: Path, metric: Metric, pool: Pool) -> list[Note]:
    """A note for a timing without a floor: the machine was never calibrated, or it was and calibrating again would not
    help."""
    if not metric.timing or pool.machine is None:
        return []
    if _profile(results, pool) is None:
        return [note(NoteCode.NO_PROFILE)]
    return [note(NoteCode.NO_FLOOR, metric=metric.noise_of or base_metric(metric).name)]


def _profile(results: Path, pool: Pool) -> MachineProfile | None:
    return None if pool.machine is None else read_profile(results, pool.machine)


def fits(record: Record) -> bool:
    """Whether the launch had a core for every thread."""
    return not record.oversubscribed


def crowd(records: Sequence[Record]) -> list[tuple[int, int, int | str]]:
    """Ranks, threads per rank and cores of these oversubscribed launches; cores are `fewer` where the record does not
    say how many there were."""
    kinds = {
        (record.case.ranks, record.case.threads_per_rank, record.environment.get("cores", "fewer"))
        for record in records
    }
    return sorted(kinds, key=str)


def outside_fences(side: SideName, values: Sequence[tuple[Launch, float]]) -> list[Note]:
    """A note on values outside Tukey's fences; they are not removed."""
    beyond = outliers([value for _, value in values])
    if not beyond.count:
        return []
    outside = {values[position][0].record.launch: values[position][1] for position in beyond.positions}
    return [note(NoteCode.OUTLIERS, side=side, launches=len(values), outside=outside)]
