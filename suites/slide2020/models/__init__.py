"""Metrics of this paper only: what launches learned and retrieved, iterations beside the model of operations, insertion
into tables, and arithmetic."""

from __future__ import annotations

from . import arithmetic, insertions, iterations, learned, parts

METRICS = [*learned.METRICS, *iterations.METRICS, *parts.METRICS, *insertions.METRICS, *arithmetic.METRICS]
