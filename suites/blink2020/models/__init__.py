"""Metrics of this paper only: packings, other machines, trainings, and chunks that are adapted."""

from __future__ import annotations

from . import chunks, machines, packings

METRICS = [*packings.METRICS, *machines.METRICS, *chunks.METRICS]
