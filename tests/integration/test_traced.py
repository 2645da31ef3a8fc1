"""Traced launches record every message of the engine; the arm without compute exchanges and updates as always."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch  # noqa: F401  imported before the ranks are forked, as their parent does

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import read_events
from scaleproof.programs import collective
from scaleproof.rank.unsupervised_ranks import run_ranks
from tests.integration._training import case_of, launch
from tests.short_form import ring_case

MESSAGES = {"tcp": (b"send",), "grpc": (b"send",), "shm": (b"reduce", b"pull", b"push")}


@pytest.mark.parametrize("transport", ["tcp", "shm"])
def test_bytes_of_the_traced_messages_are_those_of_the_collective(transport: str) -> None:
    """A ring over 2 ranks: every rank moves the whole array once per call."""
    case = ring_case(transport, sizes=[8000], iterations=3, warmup=1, tracing="full")

    def body(context: RankContext) -> None:
        collective.run(context)
        rows = read_events(context.recorder.path)
        moved = rows[np.isin(rows["event"], MESSAGES[transport]) & ~rows["warmup"]]
        assert moved["nbytes"].sum() == 3 * 8000
        assert set(moved["value"]) == {1 - context.rank}
        calls = rows[rows["event"] == b"all_reduce"]
        for row in moved:
            around = calls[calls["step"] == row["step"]][0]
            assert around["start_ns"] <= row["start_ns"] <= row["end_ns"] <= around["end_ns"]

    assert run_ranks(case, body, 30) == ["", ""]


def test_a_launch_that_is_not_traced_records_no_messages(tmp_path: Path) -> None:
    outcome = launch(tmp_path, case_of(ranks=2, transport="tcp", collective="ring", strategy="sync_overlap", steps=2))
    assert sum(outcome.count(event.decode()) for event in (*MESSAGES["tcp"], *MESSAGES["shm"])) == 0


@pytest.mark.parametrize("strategy", ["sync", "sync_overlap"])
def test_without_compute_a_step_still_exchanges_and_updates(strategy: str, tmp_path: Path) -> None:
    fields = {"ranks": 2, "transport": "shm", "collective": "ring", "strategy": strategy, "steps": 4, "warmup": 1}
    off = launch(tmp_path / "off", case_of(**fields, compute="none"))
    real = launch(tmp_path / "real", case_of(**fields))
    for event in ("step", "input", "communication", "queue", "wait", "update"):
        assert off.count(event) == real.count(event) > 0, event
    for event in ("forward", "backward", "loss"):
        assert off.count(event) == 0, event
    assert off.failed_checks == []
    sent = [rows["nbytes"][rows["event"] == b"communication"].sum() for rows in (off.events[0], real.events[0])]
    assert sent[0] == sent[1]


def test_an_injected_slowdown_makes_the_step_longer(tmp_path: Path) -> None:
    events = launch(tmp_path, case_of(steps=6, handicap=1.0)).events[0]
    length = {
        name: (rows := events[events["event"] == name])["end_ns"] - rows["start_ns"]
        for name in (b"step", b"forward", b"backward", b"update")
    }
    parts = length[b"forward"] + length[b"backward"] + length[b"update"]
    assert np.median(length[b"step"] / parts) > 1.9
