"""Metrics of this paper only: how well items are ranked, what bots gain, and what ranks send each other."""

from __future__ import annotations

from . import exchanges, rankings

METRICS = [*rankings.METRICS, *exchanges.METRICS]
