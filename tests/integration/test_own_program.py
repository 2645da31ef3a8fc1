"""A suite's own program: started on every rank, part of the case's identity, refused with one line when it is not
there."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.launch.supervisor import run_plan
from scaleproof.programs.own import load_entry
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite

SUITE = """\
suite: mine
title: a suite with a program of its own
experiments:
  count:
    summary: counts
    base: {{program: own, entry: {entry}, ranks: 2, iterations: 3, options: {{step: 5}}}}
    arms: {{only: {{}}}}
    sizes: {{smoke: {{launches: 1, matrix: [{{arms: [only]}}]}}}}
"""
PROGRAM = """\
from suite_programs.steps import moments


def obstacle(case):
    return ("no lamp", "buy one") if case.options.get("lamp") else None


def run(context):
    for number in range(context.case.iterations):
        start, end = moments()
        context.recorder.add("count", number, start, end, value=float(number * context.case.options["step"]))
"""
NEIGHBOUR = """\
import time


def moments():
    return time.monotonic_ns(), time.monotonic_ns() + 1
"""


@pytest.fixture
def suite_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "programs").mkdir(parents=True)
    (folder / "suite.yaml").write_text(SUITE.format(entry="counting"))
    (folder / "programs" / "counting.py").write_text(PROGRAM)
    (folder / "programs" / "steps.py").write_text(NEIGHBOUR)
    return folder


def test_every_rank_runs_the_suites_program(suite_folder: Path, tmp_path: Path) -> None:
    outcome = run_plan(
        plan(load_suite(suite_folder), "count", "smoke"), tmp_path / "results", size="smoke", deadline_s=30
    )
    store = Store(tmp_path / "results")
    record, _ = store.load(outcome.launches[0])
    samples = store.samples(record).to_pandas()
    assert (record.status, record.failure) == ("ok", None)
    assert samples.groupby("rank")["value"].sum().to_dict() == {0: 15.0, 1: 15.0}


@pytest.mark.parametrize(("slept", "evidence"), [(0, "measured"), (1, "emulated")])
def test_a_launch_that_sleeps_in_place_of_computing_is_recorded_as_emulated(
    slept: int, evidence: str, suite_folder: Path, tmp_path: Path
) -> None:
    text = SUITE.format(entry="counting").replace("step: 5", f"step: 5, slept: {slept}")
    (suite_folder / "suite.yaml").write_text(text)
    planned = plan(load_suite(suite_folder), "count", "smoke")
    outcome = run_plan(planned, tmp_path / "results", size="smoke", deadline_s=30)
    assert Store(tmp_path / "results").load(outcome.launches[0])[0].evidence == evidence


def test_another_program_is_another_case(suite_folder: Path) -> None:
    before = load_suite(suite_folder).experiment("count").size("smoke").cases[0].case_id
    (suite_folder / "programs" / "steps.py").write_text(NEIGHBOUR + "\n\nUNITS = 1\n")
    assert load_suite(suite_folder).experiment("count").size("smoke").cases[0].case_id != before


def test_an_obstacle_is_recorded_as_not_runnable(suite_folder: Path, tmp_path: Path) -> None:
    (suite_folder / "suite.yaml").write_text(SUITE.format(entry="counting").replace("step: 5", "lamp: 1"))
    outcome = run_plan(
        plan(load_suite(suite_folder), "count", "smoke"), tmp_path / "results", size="smoke", deadline_s=30
    )
    record, _ = Store(tmp_path / "results").load(outcome.launches[0])
    assert record.failure is not None
    assert (record.status, record.failure.message, record.failure.advice) == ("not_runnable", "no lamp", "buy one")


def test_a_program_that_is_not_there_is_one_line(suite_folder: Path) -> None:
    (suite_folder / "suite.yaml").write_text(SUITE.format(entry="countng"))
    with pytest.raises(SpecError, match="unknown program 'countng' of this suite; did you mean 'counting'"):
        load_suite(suite_folder)


def test_two_suites_may_name_their_programs_alike(suite_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "counting.py").write_text("WHOSE = 'the other one'\n")
    assert hasattr(load_entry(suite_folder / "programs", "counting"), "run")
    assert load_entry(other, "counting").WHOSE == "the other one"
    assert hasattr(load_entry(suite_folder / "programs", "counting"), "run")


def test_a_temporary_file_that_a_rank_leaves_goes_with_its_launch(suite_folder: Path, tmp_path: Path) -> None:
    remaining = (
        '    import tempfile\n    from pathlib import Path\n    name = tempfile.mkstemp(prefix="left-by-a-rank-")[1]\n'
    )
    note = f'    Path("{tmp_path}", f"name-{{context.rank}}").write_text(name)\n'
    (suite_folder / "programs" / "counting.py").write_text(PROGRAM + remaining + note)
    outcome = run_plan(
        plan(load_suite(suite_folder), "count", "smoke"), tmp_path / "results", size="smoke", deadline_s=30
    )
    names = [Path((tmp_path / f"name-{rank}").read_text()) for rank in range(2)]
    assert outcome.completed == 1 and len(set(names)) == 2
    assert not any(name.exists() for name in names)
    assert all(outcome.launches[0] in name.parent.name and not name.parent.exists() for name in names)
