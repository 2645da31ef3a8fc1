"""Metrics of this paper only."""

from __future__ import annotations

from . import learning, memory, schedules, throughput

METRICS = [*schedules.METRICS, *throughput.METRICS, *memory.METRICS, *learning.METRICS]
