"""`scaleproof tune` on real gradients in virtual time: one budget for every arm, a file that a reader can follow, and a
run that goes on where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from scaleproof.cli import main
from scaleproof.core.evidence_marks import TRAJECTORY_MEANING
from scaleproof.record.store import Store
from scaleproof.spec.suite import load_suite

SUITE = """\
suite: x
title: t
experiments:
  e:
    summary: s
    tune: {grid: {learning_rate: [1.0e+30, 0.05, 0.01]}, metric: test_loss, launches: 2}
    base:
      program: train
      workload: {name: dnn_digits, data: digits}
      minibatch: 48
      steps: 6
      warmup: 0
      evaluate_every: 3
      ranks: 2
      transport: tcp
      fabric: {name: simulated, link_mbit: 10000}
      compute: {name: real, profile: xeon_e5_2698v3_x2, efficiency: 0.5}
    arms: {gossip: {strategy: gossip}, local: {strategy: local_sgd}}
    sizes: {ci: {launches: 1, matrix: [{arms: [gossip, local]}]}}
"""
TUNE = ("tune", "x", "--size", "ci")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the suite."""
    (tmp_path / "suites" / "x").mkdir(parents=True)
    (tmp_path / "suites" / "x" / "suite.yaml").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_arm_is_tuned_with_one_budget_and_the_suite_runs_with_what_was_chosen(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "x", "--size", "ci"]) == 2
    assert "type `scaleproof tune x --experiment e --size ci`" in capsys.readouterr().err
    assert main([*TUNE, "--dry-run"]) == 0
    assert not (folder / "suites" / "x" / "tuned.yaml").exists()
    assert main([*TUNE]) == 0
    printed = capsys.readouterr().out
    assert "12 launches: 0 finished before, 12 done" in printed
    file = folder / "suites" / "x" / "tuned.yaml"
    tuned: dict[str, Any] = yaml.safe_load(file.read_text())["experiments"]["e"]["ci"]
    assert tuned["evidence"] == "simulated, trajectory computed" and "machine" not in tuned
    for cell in tuned["cells"]:
        by_rate = {point["set"]["learning_rate"]: point["values"] for point in cell["points"]}
        assert [len(values) for values in by_rate.values()] == [2, 2, 2]
        assert all(str(value).startswith("diverged at step ") for value in by_rate[1e30])
        assert cell["chosen"]["learning_rate"] == min((0.05, 0.01), key=lambda rate: sum(by_rate[rate]))
    chosen = {cell["arm"]: cell["chosen"]["learning_rate"] for cell in tuned["cells"]}
    cases = load_suite("x").experiment("e").size("ci").cases
    assert {case.arm: case.value("learning_rate") for case in cases} == chosen
    assert main(["run", "x", "--size", "ci"]) == 0
    before = file.read_bytes()
    assert main([*TUNE]) == 0
    assert "12 launches: 12 finished before, 0 done" in capsys.readouterr().out
    assert file.read_bytes() == before


def test_a_tuning_that_was_interrupted_goes_on_and_gives_the_same_file(folder: Path, tmp_path: Path) -> None:
    assert main([*TUNE]) == 0
    file, store = folder / "suites" / "x" / "tuned.yaml", Store(folder / "results")
    whole = yaml.safe_load(file.read_text())
    for record in list(store.records())[:5]:
        run = store.folder(record) / "run.json"
        run.unlink()
    file.unlink()
    assert main([*TUNE]) == 0
    assert yaml.safe_load(file.read_text()) == whole


def test_the_command_that_runs_a_launch_of_a_tuning_again_is_the_tuning(folder: Path) -> None:
    assert main([*TUNE]) == 0
    record = next(iter(Store(folder / "results").records()))
    assert record.command == ["scaleproof", "tune", "x", "--experiment", "e", "--size", "ci"]


def test_a_metric_without_a_better_direction_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "suites" / "x" / "suite.yaml"
    file.write_text(SUITE.replace("metric: test_loss", "metric: test_los"))
    assert main([*TUNE]) == 2
    error = capsys.readouterr().err.strip()
    assert "suites/x/suite.yaml:6" in error and "did you mean 'test_loss'" in error and "\n" not in error


def test_the_page_shows_what_was_tuned_and_how_arms_learned_in_virtual_time(folder: Path) -> None:
    assert main([*TUNE]) == 0
    assert main(["run", "x", "--size", "ci"]) == 0
    assert main(["collect", "x", "e", "--size", "ci"]) == 0
    assert main(["run", "x", "e", "--size", "ci", "--table", "at_once.parquet"]) == 0
    collected = folder / "results" / "tables" / "x.e.ci.parquet"
    assert pq.read_table(folder / "at_once.parquet").equals(pq.read_table(collected))
    assert main(["report", "x", "--size", "ci"]) == 0
    page = (folder / "reports" / "x.html").read_text()
    assert "Tuned values" in page and "learning_rate" in page
    for axis in ("over samples", "over steps", "over time", "virtual time since the first step (s)"):
        assert axis in page
    assert "simulated, trajectory computed" in page and "wait for peer" in page
    run_pages = [each.read_text() for each in (folder / "reports" / "runs").glob("*.html")]
    assert {text.count(TRAJECTORY_MEANING) for text in (page, *run_pages)} == {1}, "the mark is explained once"
