"""Launches that have words in place of a number: they diverged, or never reached their target. They count as worse than
every number (docs/verdicts.md)."""

from __future__ import annotations

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metric import Metric
from scaleproof.stats.never import worst


def words_of(metric: Metric, launch: Launch) -> str | None:
    """What a launch has in place of a number; None where it has one, or no value for another reason."""
    return None if metric.instead is None else metric.instead(launch.record, launch.samples)


def number_or_worst(metric: Metric, launch: Launch) -> float | None:
    """The value of a metric of single launches; of a launch without a number the one that is worse than all."""
    assert metric.launch is not None
    value = metric.launch(launch.record, launch.samples)
    if value is not None or words_of(metric, launch) is None:
        return value
    return worst(metric.direction == "higher")
