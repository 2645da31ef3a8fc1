"""Input checks in real launches: recorded before timing, shown by the command, and a data set that is wrong ends the
launch with one clear line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scaleproof.commands import show
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import read_events
from scaleproof.launch.supervisor import run_plan
from scaleproof.programs import train
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.record.store import Store
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite
from scaleproof.workloads.datasets import digits
from scaleproof.workloads.inputs.findings import BadInput
from tests.short_form import case_from

ROOT = Path(__file__).parents[2]
BROKEN = """\
suite: broken
title: a graph with fewer nodes than asked for
experiments:
  count:
    summary: counts
    base: {program: own, entry: graph, ranks: 1}
    arms: {only: {}}
    sizes: {smoke: {launches: 1, matrix: [{arms: [only]}]}}
"""
GRAPH = """\
import numpy as np
from scaleproof.workloads.inputs.findings import settle
from scaleproof.workloads.inputs.graphs import WebGraph, graph_inputs


def run(context):
    source = np.arange(100)
    graph = WebGraph("ring", 100, source, np.roll(source, 1), source * 0, "a ring")
    settle(context.inputs, graph_inputs(graph, 101, 1))
    context.recorder.add("count", 0, 1, 2)
"""


def test_the_smallest_launch_of_the_suite_records_and_shows_its_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launches = plan(load_suite(ROOT / "suites" / "vigna2007"), "pagerank", "ci")
    outcome = run_plan(launches, tmp_path / "results", size="ci", deadline_s=60)
    assert outcome.complete
    store = Store(tmp_path / "results")
    by_arm = {record.case.arm: record for record, _ in map(store.load, outcome.launches)}
    for record in by_arm.values():
        assert {check.check for check in record.inputs} == {f"D{number}" for number in range(1, 13)}
        assert all("synthetic" in check.dataset for check in record.inputs)
        assert {check.name for check in record.checks if check.passed} >= {
            "gauss_seidel.gmres.agree",
            "gmres.power.agree",
            "gauss_seidel.power.agree",
        }
    warned = {
        arm: sorted(check.check for check in record.inputs if check.outcome == "warn") for arm, record in by_arm.items()
    }
    assert warned == {"web": [], "padded": ["D3", "D4", "D5", "D6"]}
    show._print(by_arm["padded"], store.folder(by_arm["padded"]), store)
    printed = capsys.readouterr().out
    assert "inputs: synthetic web, padded; 4 warn, 12 pass, 2 not applicable" in printed
    assert "  warn D3 isolated nodes: 0.490, bound at most 0.05; share of ids without any arc" in printed


def test_a_wrong_data_set_fails_with_its_code_and_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    (folder / "programs").mkdir(parents=True)
    (folder / "suite.yaml").write_text(BROKEN)
    (folder / "programs" / "graph.py").write_text(GRAPH)
    outcome = run_plan(plan(load_suite(folder), "count", "smoke"), tmp_path / "results", size="smoke", deadline_s=30)
    record, _ = Store(tmp_path / "results").load(outcome.launches[0])
    assert record.status == "failed" and record.failure is not None
    assert (record.failure.code, record.failure.message) == (
        "bad_input",
        "BadInput: D2 nodes of ring: 100, must be 101",
    )
    assert [check.name for check in record.inputs if check.outcome == "fail"] == ["nodes"]


def _train(context: RankContext) -> None:
    """Runs in the rank; a failed assertion is the rank's error."""
    train.run(context)
    if context.rank == 0:
        assert {finding["check"] for finding in context.inputs} == {f"D{number}" for number in range(1, 13)}
        assert {finding["outcome"] for finding in context.inputs} == {"pass", "not applicable"}
    else:
        assert context.inputs == []
    assert np.any(read_events(context.recorder.path)["event"] == b"step")


def _train_on_another_file(context: RankContext) -> None:
    digits.read_digits = lambda: b"<html>"
    with pytest.raises(BadInput, match="D1 sha256 of digits: [0-9a-f]+, must be 09f66e6d") as raised:
        train.run(context)
    assert raised.value.code == "bad_input"
    assert len(read_events(context.recorder.path)) == 0


DIGITS = {
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "program": "train",
    "ranks": 2,
    "transport": "tcp",
    "collective": "ring",
    "strategy": "sync",
    "workload": "dnn_digits",
    "workload.data": "digits",
    "minibatch": 64,
    "steps": 3,
    "warmup": 0,
}


@pytest.mark.parametrize("body", [_train, _train_on_another_file], ids=["sound", "another_file"])
def test_rank_0_checks_digits_before_any_step(body: Callable[[RankContext], None]) -> None:
    assert run_ranks(case_from(DIGITS), body) == ["", ""]
