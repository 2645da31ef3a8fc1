"""Metrics of this paper only: pairs and bytes by formulas and as counted, what a step costs, and learning."""

from __future__ import annotations

from . import costs, counts, encoding, learning

METRICS = [*encoding.METRICS, *counts.METRICS, *costs.METRICS, *learning.METRICS]
