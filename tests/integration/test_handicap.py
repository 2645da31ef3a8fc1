"""The injected slowdown: every timed sample of a real launch is prolonged by its share, and nothing else is."""

from __future__ import annotations

import time
from typing import Any

import pytest

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now, read_events
from scaleproof.programs import collective, transfer
from scaleproof.programs.handicap import finished
from scaleproof.rank.unsupervised_ranks import run_ranks
from tests.short_form import case_from

SLEEP_NS = 3_000_000
BASE: dict[str, Any] = {
    "suite": "test",
    "experiment": "test",
    "arm": "test",
    "iterations": 4,
    "warmup": 1,
    "sizes": [64],
    "ranks": 2,
    "transport": "shm",
}


def durations(context: RankContext, event: str) -> list[int]:
    rows = read_events(context.recorder.path)
    rows = rows[rows["event"] == event.encode()]
    return [int(end - start) for start, end in zip(rows["start_ns"], rows["end_ns"], strict=True)]


def slow_start(call: collective.Call) -> collective.Call:
    """The same call, which takes at least SLEEP_NS."""

    def start() -> None:
        time.sleep(SLEEP_NS / 1e9)
        call.start()

    return collective.Call(call.source, call.target, start)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_every_call_of_a_collective_lasts_longer_by_the_share_on_every_rank(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = collective.prepare

    def body(context: RankContext) -> None:
        collective.run(context)
        lengths = durations(context, "all_reduce")
        # Lower bounds hold however busy the machine is; the upper one leaves a whole second.
        assert len(lengths) == 5 and min(lengths) >= (1 + share) * SLEEP_NS
        assert share or min(lengths) < 1e9

    monkeypatch.setattr(collective, "prepare", lambda *arguments: slow_start(prepare(*arguments)))
    assert run_ranks(case_from(BASE | {"program": "collective", "collective": "ring", "handicap": share}), body) == [
        "",
        "",
    ]


def test_every_round_trip_lasts_longer_by_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    round_trip = transfer._round_trip

    def slow(*arguments: Any) -> None:
        time.sleep(SLEEP_NS / 1e9)
        round_trip(*arguments)

    def body(context: RankContext) -> None:
        transfer.run(context)
        if context.rank == 0:
            lengths = durations(context, "transfer")
            assert len(lengths) == 5 and min(lengths) >= 2 * SLEEP_NS

    monkeypatch.setattr(transfer, "_round_trip", slow)
    assert run_ranks(case_from(BASE | {"program": "transfer", "handicap": 1.0}), body) == ["", ""]


def test_the_wait_is_a_share_of_what_the_sample_took() -> None:
    start = now()
    time.sleep(0.02)
    before = now()
    end = finished(start, 0.5)
    assert end - start >= 1.5 * (before - start)
    assert finished(start, 0.0) - end < 1e9
