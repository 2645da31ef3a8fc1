"""How far a comparison can be trusted on the machine of the records: its noise floor, and launches with more threads
than cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_pool import Pool
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.record.machine import FILE, MachineProfile, read_profile
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import shown
from scaleproof.stats.summary import outliers

_SAME_TIME = {"algbw": "collective_latency", "busbw": "collective_latency", "transfer_bandwidth": "transfer_latency"}
"""Bandwidths are a constant over a time, so that both differ by the same share."""


def base_metric(metric: Metric) -> Metric:
    """The metric of single launches behind a ratio; the metric itself where it is one."""
    return METRICS[metric.ratio_of] if metric.ratio_of else metric


def floor_of(
    results: Path, metric: Metric, pool: Pool, select: Mapping[str, Any], evidence: Evidence, nbytes: int | None
) -> float | None:
    """The noise floor as a share; None where the metric is no timing or the machine's profile has none for it.

    SpecError: the profile cannot be read.
    """
    launches = pool.launches(select, evidence)
    profile = _profile(results, pool)
    if (
        not metric.timing or profile is None or not launches or evidence == "simulated"
    ):  # no machine's noise is in a prediction
        return None
    name, program = base_metric(metric).name, launches[0].record.case.program
    found = profile.floor(name, program, nbytes) or profile.floor(_SAME_TIME.get(name, name), program, nbytes)
    return found.share if found else None


def not_covered(results: Path, metric: Metric, pool: Pool) -> list[str]:
    """A line for a timing without a floor: the machine was never calibrated, or it was and calibrating again would not
    help."""
    if not metric.timing or pool.machine is None:
        return []
    if _profile(results, pool) is None:
        return ["this machine has no noise floors yet, so significance alone decided: type scaleproof calibrate"]
    return [f"this machine's profile has no noise floor of {base_metric(metric).name}: significance alone decided"]


def _profile(results: Path, pool: Pool) -> MachineProfile | None:
    if pool.machine is None:
        return None
    try:
        return read_profile(results, pool.machine)
    except ValidationError as failed:
        raise SpecError(
            f"{shown(results / 'machines' / pool.machine / FILE)}: no profile of this version; type scaleproof calibrate"
        ) from failed


def fits(record: Record) -> bool:
    """Whether the launch had a core for every thread."""
    return not record.oversubscribed


def crowd(records: Sequence[Record]) -> str:
    """Which ranks, threads and cores these oversubscribed launches had."""
    kinds = sorted(
        {
            (record.case.ranks, record.case.threads_per_rank, record.environment.get("cores", "fewer"))
            for record in records
        },
        key=str,
    )
    return ", ".join(
        f"{ranks} ranks with {threads} thread{'s' if threads > 1 else ''} on {cores} cores"
        for ranks, threads, cores in kinds
    )


def outside_fences(label: str, found: Sequence[tuple[Launch, float]]) -> list[str]:
    """A line on values outside Tukey's fences; they stay in."""
    beyond = outliers([value for _, value in found])
    if not beyond.count:
        return []
    named = ", ".join(f"{found[position][0].record.launch} ({found[position][1]:.4g})" for position in beyond.positions)
    return [f"{beyond.count} of {len(found)} launches{label} outside Tukey's fences, kept: {named}"]
