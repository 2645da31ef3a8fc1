"""Two calls of `run` make the two campaigns of size small, each with its own repetitions, seeds and id."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.cli import main
from scaleproof.record.stops import read_stops
from scaleproof.record.store import Store

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
