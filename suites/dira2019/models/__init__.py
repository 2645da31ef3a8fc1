"""Metrics of this paper only: costs of schedulers, their work, the time of a decision, and sizes of action spaces."""

from __future__ import annotations

from . import action_spaces, costs, decisions

METRICS = [*costs.METRICS, *decisions.METRICS, *action_spaces.METRICS]
