"""Metrics of this paper only: what launches learned and retrieved, iterations beside the model of operations, and
arithmetic."""

from __future__ import annotations

from . import arithmetic, iterations, learned

METRICS = [*learned.METRICS, *iterations.METRICS, *arithmetic.METRICS]
