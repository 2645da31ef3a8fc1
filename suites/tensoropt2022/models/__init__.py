"""Metrics of this paper only: strategies beside what is predicted of them, searches, and frontiers of networks."""

from __future__ import annotations

from . import ends, frontiers, growth, searches, strategies

METRICS = [*strategies.METRICS, *searches.METRICS, *growth.METRICS, *frontiers.METRICS, *ends.METRICS]
