"""Metrics of this paper only: trainings beside their base, the traffic and the load of the centre, and the stability of
turns on a quadratic."""

from __future__ import annotations

from . import centre, trainings, turns

METRICS = [*trainings.METRICS, *centre.METRICS, *turns.METRICS]
