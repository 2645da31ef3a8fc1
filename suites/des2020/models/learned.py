"""How good models are."""

from __future__ import annotations

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, MadeUp, Wanted, events, possible
from scaleproof.claims.metric import Metric
from scaleproof.claims.sample_columns import columns


def auc_lost(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """auc_lost = area under the ROC curve of the base - area under the ROC curve (suite des2020)

    After as many samples, on samples that nobody has seen. Below 0: a better model than the base.
    """
    ours, theirs = _auc(launch), _auc(base)
    return None if ours is None or theirs is None else theirs - ours


def _auc(launch: Launch) -> float | None:
    rows = columns(launch.record, launch.samples)
    found = rows.value[rows.of("auc")]
    return float(found[0]) if len(found) else None


def made_up_lost(wanted: Wanted) -> MadeUp:
    """Launches with an area of a half, less what is lost."""
    lost = 0.0 if wanted.value is None else possible(wanted.value, -0.5, 0.5)
    return events(Event("auc", ranks=(0,), value=0.5 - lost))


METRICS = [Metric("auc_lost", "1", "lower", pair=auc_lost, same=(), made_up=made_up_lost, range=(-0.5, 0.5))]
