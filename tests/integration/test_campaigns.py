"""Two calls of `run` make the two campaigns of size small, each with its own repetitions, seeds and id. A run that was
interrupted goes on under an id of its own, but for the block that it broke off in."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from scaleproof.cli import main
from scaleproof.compare.case_pairs import pair_launches
from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.stops import read_stops
from scaleproof.record.store import Store
from tests.integration.launches import Timekeeper, launches, small_case

SUITE = """\
suite: two
title: t
experiments:
  e:
    summary: s
    base: {program: transfer, ranks: 2, sizes: [1 KiB], iterations: 2}
    arms: {shm: {transport: shm}}
    sizes:
      small: {launches: 1, matrix: [{arms: [shm]}]}
"""


def test_each_call_makes_the_next_campaign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, results = tmp_path / "two", tmp_path / "results"
    folder.mkdir()
    (folder / "suite.yaml").write_text(SUITE)
    run = ["run", str(folder), "--size", "small", "--results", str(results)]
    assert main([*run, "--dry-run"]) == 0
    assert "1 cases, 2 launches in 2 campaigns" in capsys.readouterr().out
    for number in range(2):
        assert main(run) == 0
        assert f"campaign {number} (2 planned): 1 launches: 0 finished before, 1 done" in capsys.readouterr().out
    assert main([*run, "--campaign", "0"]) == 0
    assert "campaign 0 (2 planned): 1 launches: 1 finished before" in capsys.readouterr().out
    first, second = Store(results).records()
    assert [(record.plan_index, record.campaign) for record in (first, second)] == [(0, 0), (1, 1)]
    assert first.seed != second.seed and first.campaign_id != second.campaign_id != ""
    stops = read_stops(results, "two", "e", "small")
    assert stops is not None and [(case.campaign, case.launches) for case in stops.cases] == [(0, 1), (1, 1)]
    assert main([*run, "--campaign", "2"]) == 2
    assert "no launch fits --campaign 2" in capsys.readouterr().err


class Interrupting(Timekeeper):
    """The user ends the run once so many launches are done."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def ended(self, record: Record) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_run_has_two_ids_and_keeps_all_pairs(tmp_path: Path) -> None:
    cases = [small_case("one"), small_case("other", iterations=3)]
    planned = [replace(launch, seed=launch.plan_index) for launch in launches(cases, 4)]
    with pytest.raises(KeyboardInterrupt):
        run_plan(planned, tmp_path, size="ci", deadline_s=30, progress=Interrupting(3))
    done = {record.launch: record.campaign_id for record in Store(tmp_path).records() if record.status == "ok"}
    assert len(done) == 3 and len(set(done.values())) == 1
    outcome = run_plan(planned, tmp_path, size="ci", deadline_s=30)
    assert (outcome.skipped, outcome.completed) == (3, 5)
    good = [record for record in Store(tmp_path).records() if record.status == "ok"]
    assert len({record.campaign_id for record in good}) == 2
    before, after = set(done.values()).pop(), {record.campaign_id for record in good if record.plan_index > 1}
    assert {record.campaign_id for record in good if record.plan_index <= 1} == {before} and after == {*after} - {
        before
    }
    pairs, why = pair_launches(*([record for record in good if record.case.arm == arm] for arm in ("one", "other")))
    assert len(pairs) == 4 and why is None
    once_more = run_plan(planned, tmp_path, size="ci", deadline_s=30, again=True)
    again = [Store(tmp_path).load(launch)[0] for launch in once_more.launches]
    assert len({record.campaign_id for record in again} - {before, *after}) == 1
    assert {record.replaces for record in again} == {before, *after}
