"""What is said about a scheme of pipelines, beside the function that makes its schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scaleproof.pipelines.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Scheme:
    """`make`: its schedule for stages and micro-batches of one iteration (and pairs of pipelines in opposite
    directions, if it `has_pairs`). `most_stashed`: micro-batches whose activations a worker holds at most, by the same
    two numbers."""

    name: str
    summary: str
    make: Callable[..., Schedule]
    most_stashed: Callable[[int, int], float]
    has_pairs: bool = False
