"""Metrics of this paper only: how far workers come under a barrier, how far they lag behind each other, the bounds on
that, and the course of accuracy."""

from __future__ import annotations

from . import bounds, course, lags, orders, progress

METRICS = [*progress.METRICS, *lags.METRICS, *orders.METRICS, *bounds.METRICS, *course.METRICS]
