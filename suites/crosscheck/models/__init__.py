"""Metrics of this suite only: one number per launch from a tool's output or from our own record."""

from __future__ import annotations

from . import rates, simulator, whole_launch

METRICS = [*rates.METRICS, *whole_launch.METRICS, *simulator.METRICS]
