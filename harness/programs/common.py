"""What all programs do the same way: mark the timed region, count iterations, leave the transport."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from harness.rank.context import RankContext
from harness.rank.recorder import now
from harness.transports.base import Collectives, Transport


def mark(context: RankContext, event: str, step: int) -> None:
    """A moment: an event whose start is its end."""
    moment = now()
    context.recorder.add(event, step, moment, moment)


def timed_iterations(context: RankContext, warmup: int, iterations: int) -> Iterator[int]:
    """Numbers 0 to warmup + iterations - 1; events of the first `warmup` are flagged."""
    for iteration in range(warmup + iterations):
        context.recorder.warmup = iteration < warmup
        yield iteration
    context.recorder.warmup = False


def leave(context: RankContext, transport: Collectives | Transport) -> None:
    """Keep what the transport counted and said of itself, then release it."""
    context.facts["traffic"] = asdict(transport.traffic)
    context.facts["transport"] = asdict(transport.capabilities) | {"dtypes": sorted(transport.capabilities.dtypes)}
    transport.close()
