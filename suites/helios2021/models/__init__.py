"""Metrics of this paper only: schedules, marginals, nodes that are switched off, and real dispatchers."""

from __future__ import annotations

from . import dispatching, gains, marginals, saving, schedules

METRICS = [*schedules.METRICS, *gains.METRICS, *marginals.METRICS, *saving.METRICS, *dispatching.METRICS]
