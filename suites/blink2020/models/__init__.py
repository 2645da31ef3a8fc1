"""Metrics of this paper only: packings, other machines, trainings, sizes, exact sums, and chunks that are adapted."""

from __future__ import annotations

from . import chunks, machines, packings, sizes, sums

METRICS = [*packings.METRICS, *machines.METRICS, *chunks.METRICS, *sizes.METRICS, *sums.METRICS]
