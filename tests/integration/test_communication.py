"""Who communicates beside the backward pass: a thread with a core of its own where there is one, or the main thread
between layers; the same bits by both."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
import torch  # noqa: F401  imported before the ranks are forked, as their parent does

from scaleproof.core.context import RankContext
from scaleproof.programs import train
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.strategies.communication_thread import CommunicationThread
from tests.integration._training import case_of, launch


@pytest.mark.parametrize("transport", ["tcp", "shm", "grpc"])
def test_the_main_thread_gives_the_bits_that_the_thread_gives(transport: str, tmp_path: Path) -> None:
    fields = {"ranks": 2, "transport": transport, "collective": "ring", "strategy": "sync_overlap", "steps": 10}
    thread, main = (launch(tmp_path / who, case_of(**fields, communication=who)) for who in ("thread", "main"))
    assert np.array_equal(thread.parameters, main.parameters)
    assert main.count("communication") == thread.count("communication") > 10


@pytest.mark.parametrize(("transport", "collective"), [("gloo", "native"), ("tcp", "ring")])
def test_the_record_says_who_communicates(transport: str, collective: str) -> None:
    def body(context: RankContext) -> None:
        train.run(context)
        assert context.facts["communication"] == {"by": "main thread", "core": None}
        assert not [thread for thread in threading.enumerate() if thread.name == "communication"]

    case = case_of(
        ranks=2, transport=transport, collective=collective, strategy="sync_overlap", steps=2, communication="main"
    )
    assert run_ranks(case, body) == ["", ""]


def test_the_thread_has_a_core_of_its_own_where_the_rank_can_spare_one(monkeypatch: pytest.MonkeyPatch) -> None:
    affinities: list[set[int]] = []

    class Watched(CommunicationThread):
        def _run(self) -> None:
            super()._run()
            affinities.append(os.sched_getaffinity(0))

    monkeypatch.setattr("scaleproof.strategies.sync_overlap.CommunicationThread", Watched)

    def body(context: RankContext) -> None:
        allowed = os.sched_getaffinity(0)
        train.run(context)
        communication = context.facts["communication"]
        if len(allowed) < 2:
            assert communication["core"] is None and "1 cores for 1 ranks" in communication["why"]
        else:
            assert (
                affinities == [{communication["core"]}]
                and {communication["core"], *communication["compute_cores"]} == allowed
            )
        assert os.sched_getaffinity(0) == allowed

    case = case_of(ranks=1, transport="tcp", collective="ring", strategy="sync_overlap", steps=2)
    assert run_ranks(case, body) == [""]
