"""Metrics of this paper only: what substitution saves, what it should send, and how good its models are."""

from __future__ import annotations

from . import learned, saved, sent, traffic_model

METRICS = [*traffic_model.METRICS, *saved.METRICS, *sent.METRICS, *learned.METRICS]
