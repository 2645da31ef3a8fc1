"""Trainings in virtual time whose gradients are computed for real: these take most of a launch's time."""

from __future__ import annotations

from typing import Any

from scaleproof.spec.case import AnyCase, TrainCase


def computes(case: AnyCase) -> bool:
    """Whether a launch of the case computes gradients in virtual time."""
    real = isinstance(case, TrainCase) and case.compute == "real" and case.replicas is not None
    return real and case.plugin("fabric").predicted


def count(case: TrainCase) -> int:
    """Gradients of a launch, of all replicas, warm-up included."""
    return (case.steps + case.warmup) * case.workers


def kind(case: TrainCase) -> tuple[Any, ...]:
    """Gradients of one kind take about the same time on one machine."""
    return case.framework, case.workload, case.batch, case.value("fabric.mathematics"), case.seconds
