"""The size of chunks that a launch finds by itself, beside sizes that are given."""

from __future__ import annotations

from collections.abc import Sequence

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_programs import program_s
from scaleproof.spec.case import AnyCase, OwnCase


def _chunk_kib(case: AnyCase) -> int | None:
    """0: adapted."""
    return int(case.options["chunk_kib"]) if isinstance(case, OwnCase) and "chunk_kib" in case.options else None


def over_best_chunk(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """The time with chunks that are adapted over that of the fastest given size, in one repetition (suite blink2020).

    over_best_chunk = program_s of the launch that adapts its chunks / least program_s of those with a given size

    Adapting takes place in the warm-up, which [program_s](program_s.md) leaves out. None without either side.
    """
    adapted, given = list[float](), list[float]()
    for launch in block:
        seconds, chunk = program_s(launch.record, launch.samples), _chunk_kib(launch.record.case)
        if seconds is not None and chunk is not None:
            (given if chunk else adapted).append(seconds)
    return adapted[0] / min(given) if adapted and given else None


def made_up_over_best(wanted: Wanted) -> MadeUp:
    """Given sizes take 1 s."""
    chunk = _chunk_kib(wanted.case)
    if chunk is None:
        raise ImpossibleValue("the case sends no chunks")
    return events(Event("step", 0.0, 1.0 if chunk else possible(wanted.known)))


METRICS = [
    Metric(
        "over_best_chunk",
        "x",
        "lower",
        block=over_best_chunk,
        clocked=True,
        noise_of=("program_s",),
        made_up=made_up_over_best,
    )
]
