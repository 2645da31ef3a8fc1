"""From records on disk to verdicts: which launches count, what pairs with what, and what is said when they are missing."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from claims_samples import record, samples, step

from harness.claims.judge import judge_suite, read_claims, write_claims
from harness.claims.schema import ClaimResult
from harness.record.schema import SAMPLES, Failure
from harness.record.store import Store
from harness.spec.errors import SpecError
from harness.spec.plan import PlannedLaunch, plan
from harness.spec.suite import Suite, load_suite

SUITE = """
suite: mine
title: t
experiments:
  speed:
    summary: s
    base: {program: train, strategy: sync_overlap, workload: cd_dnn, minibatch: 8, steps: 2, warmup: 0, ranks: 2}
    arms:
      gloo: {transport: gloo}
      tcp: {transport: tcp, collective: ring}
      alone: {strategy: local_only, transport: null}
    sizes:
      smoke:
        launches: 6
        matrix: [{arms: [gloo, tcp]}, {arms: [alone], sweep: {ranks: [1, 2]}}]
"""
SPEEDUP: dict[str, Any] = {
    "id": "mine.own.speedup", "origin": "own", "statement": "s", "unit": "x", "direction": "higher", "experiment": "speed", "metric": "speedup",
    "select": {"transport": "gloo"}, "against": {"ranks": 1}, "rule": {"name": "at_least", "value": 1.5},
}  # fmt: skip
Length = Callable[[PlannedLaunch], float]


def judged(tmp_path: Path, claim: dict[str, Any], length: Length, change: Callable[[PlannedLaunch], dict[str, Any] | None] = lambda launch: {}) -> ClaimResult:
    """The claim after launches whose steps take `length` ms; `change` gives fields of a record, None for a launch that is missing."""
    suite = a_suite(tmp_path, claim)
    store = Store(tmp_path / "results")
    for launch in plan(suite, "speed", "smoke"):
        fields = change(launch)
        if fields is not None:
            commit(store, launch, length(launch), fields)
    (result,) = judge_suite(suite, "smoke", store)
    return result


def a_suite(tmp_path: Path, claim: dict[str, Any]) -> Suite:
    folder = tmp_path / "mine"
    folder.mkdir(exist_ok=True)
    (folder / "suite.yaml").write_text(SUITE)
    (folder / "claims.yaml").write_text(yaml.safe_dump([claim]))
    return load_suite("mine", tmp_path)


def commit(store: Store, launch: PlannedLaunch, length: float, fields: dict[str, Any]) -> None:
    rows: list[Any] = []
    for rank in range(launch.case.ranks):
        exchange = None if launch.case.transport is None else (50.0, 70.0 + rank)
        rows += [
            (rank, "start", 0, 0, 0),
            *step(rank, 0, 0, exchange, length),
            *step(rank, 1, length, exchange, length),
            (rank, "end", 1, 2 * length, 2 * length),
        ]
        rows += [(rank, "loss", 0, 0, 0, 0, 2.0), (rank, "loss", 1, 0, 0, 0, 1.0)]
    draft = store.staging / "draft"
    draft.mkdir(parents=True)
    made = record(launch.case.model_dump(), launch.plan_index, seed=launch.seed, **fields)
    store.commit(draft, made, pa.Table.from_pandas(samples(*rows)[SAMPLES.names], schema=SAMPLES, preserve_index=False))


def one_rank_takes_twice_as_long(launch: PlannedLaunch) -> float:
    """With drift that all launches of a block share."""
    return (200 if launch.case.ranks == 1 else 100) * (1 + 0.2 * launch.plan_index)


def test_a_speedup_is_paired_by_blocks_and_names_its_base(tmp_path: Path) -> None:
    result = judged(tmp_path, SPEEDUP, one_rank_takes_twice_as_long)
    assert result.verdict == "reproduced"
    assert result.ours == pytest.approx(2)
    assert result.interval is not None
    assert (result.interval.low, result.interval.high) == pytest.approx((2, 2))
    assert result.interval.method == "percentile bootstrap over blocks"
    assert (result.n, result.evidence, len(result.runs)) == (6, "measured", 12)
    assert result.base is not None
    assert result.base.unit == "samples/s"
    assert result.base.value == pytest.approx(8 / 0.2 / 1.5, rel=0.02)


def test_efficiency_divides_by_the_ranks(tmp_path: Path) -> None:
    claim = {**SPEEDUP, "metric": "parallel_efficiency", "unit": "fraction"}
    assert judged(tmp_path, claim, one_rank_takes_twice_as_long).ours == pytest.approx(1)


def test_missing_launches_are_counted_and_leave_the_verdict_open(tmp_path: Path) -> None:
    result = judged(tmp_path, SPEEDUP, one_rank_takes_twice_as_long, lambda launch: None if launch.plan_index == 5 else {})
    assert (result.verdict, result.n) == ("inconclusive", 5)
    assert "5 of 6 planned launches finished" in result.reason


def test_only_blocks_with_both_sides_are_paired(tmp_path: Path) -> None:
    missing = {("gloo", 0), (None, 5)}
    result = judged(tmp_path, SPEEDUP, one_rank_takes_twice_as_long, lambda launch: None if (launch.case.transport, launch.plan_index) in missing else {})
    assert (result.n, len(result.runs)) == (4, 8)
    assert result.ours == pytest.approx(2)


def test_launches_of_other_code_are_left_out_and_counted(tmp_path: Path) -> None:
    old = {"machine": "other", "started_at": "2025-01-01T00:00:00Z"}
    result = judged(tmp_path, SPEEDUP, one_rank_takes_twice_as_long, lambda launch: old if launch.plan_index == 0 else {})
    assert result.n == 5
    assert "4 launches of other machines or code versions left out" in result.reason


def test_failed_launches_are_no_result(tmp_path: Path) -> None:
    failure = Failure(code="rank_killed", rank=1, message="m", step=1, operation="forward", advice="a")
    failed = {"status": "failed", "failure": failure}
    result = judged(tmp_path, SPEEDUP, one_rank_takes_twice_as_long, lambda launch: failed if launch.case.transport == "gloo" else {})
    assert (result.verdict, result.ours) == ("inconclusive", None)
    assert result.reason == "none of 6 planned launches finished, 6 failed"


def test_what_could_not_run_here_says_why(tmp_path: Path) -> None:
    failure = Failure(code="not_runnable", rank=-1, message="torch is not installed", step=-1, operation="", advice="type `make env`")
    absent = {"status": "not_runnable", "failure": failure}
    result = judged(tmp_path, SPEEDUP, one_rank_takes_twice_as_long, lambda launch: absent if launch.case.transport == "gloo" else {})
    assert (result.verdict, result.reason) == ("not runnable here", "torch is not installed; type `make env`")


def test_a_control_without_the_effect_leaves_the_verdict(tmp_path: Path) -> None:
    claim = {
        **SPEEDUP, "id": "mine.own.exposed", "metric": "exposed_communication_s", "unit": "s", "direction": "lower",
        "select": {"strategy": "local_only", "ranks": 2}, "rule": {"name": "equal_to_tolerance", "value": 0, "tolerance": 0},
        "control": {"statement": "exchange", "select": {"transport": "tcp"}},
    }  # fmt: skip
    del claim["against"]
    result = judged(tmp_path, claim, lambda launch: 100)
    assert result.verdict == "reproduced"
    assert result.control is not None
    assert (result.control.shows_effect, result.control.n) == (False, 6)


def test_a_control_with_the_effect_makes_it_inconclusive(tmp_path: Path) -> None:
    claim = {**SPEEDUP, "control": {"statement": "no exchange, no gain", "select": {"transport": "tcp"}}}
    result = judged(tmp_path, claim, one_rank_takes_twice_as_long)
    assert result.verdict == "inconclusive"
    assert "the control shows the effect too" in result.rule


def test_losses_are_compared_with_the_launch_of_the_same_seed(tmp_path: Path) -> None:
    claim = {
        **SPEEDUP,
        "metric": "max_loss_difference",
        "unit": "1",
        "direction": "lower",
        "rule": {"name": "equal_to_tolerance", "value": 0, "tolerance": 0.001},
    }
    result = judged(tmp_path, claim, lambda launch: 100)
    assert (result.verdict, result.ours, len(result.runs)) == ("reproduced", 0, 12)


def test_an_infinite_difference_survives_the_way_to_disk(tmp_path: Path) -> None:
    claim = {**SPEEDUP, "metric": "max_loss_difference", "unit": "1", "direction": "lower", "rule": {"name": "equal_to_tolerance", "value": 0, "tolerance": 1}}
    result = judged(tmp_path, claim, lambda launch: 100)
    assert result.interval is not None
    broken = result.model_copy(update={"ours": math.inf, "interval": result.interval.model_copy(update={"high": math.inf})})
    write_claims(tmp_path / "claims.json", [broken])
    assert read_claims(tmp_path / "claims.json") == [broken]


def test_each_level_of_evidence_has_a_result_of_its_own(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, SPEEDUP)
    store = Store(tmp_path / "results")
    for launch in plan(suite, "speed", "smoke"):
        for evidence, length in (("measured", 100), ("emulated", 50)):
            commit(store, launch, length, {"evidence": evidence, "launch": f"{launch.case.case_id}{launch.plan_index}{evidence}"})
    assert [(result.evidence, result.n) for result in judge_suite(suite, "smoke", Store(tmp_path / "results"))] == [("emulated", 6), ("measured", 6)]


ROW: dict[str, Any] = {
    "id": "mine.row", "paper": "p", "statement": "s", "metric": "speedup", "unit": "x", "direction": "higher", "x": {}, "value": 2, "baseline": None,
    "where": None, "source": "made up for this test", "provenance": "paper", "gate": True,
}  # fmt: skip
SERVED: dict[str, Any] = {
    "id": "mine.row", "experiment": "speed", "metric": "speedup", "select": {"transport": "gloo"}, "against": {"ranks": 1},
    "rule": {"name": "within", "tolerance": 0.1},
}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "kind", "verdict"),
    [
        ({}, "claim", "reproduced"),
        ({"value": 3}, "claim", "not reproduced"),
        ({"provenance": "memory_high", "gate": False}, "claim", "unverified"),
        ({"provenance": "not_recovered", "gate": False, "value": None}, "claim", "value not recovered"),
        ({"gate": False}, "context", None),
    ],
)
def test_provenance_says_whether_a_row_is_judged(tmp_path: Path, row: dict[str, Any], kind: str, verdict: str | None) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "published.yaml").write_text(yaml.safe_dump({"rows": [{**ROW, **row}]}))
    result = judged(tmp_path, {**SERVED, "kind": kind}, one_rank_takes_twice_as_long)
    assert (result.verdict, result.published) == (verdict, {**ROW, **row}["value"])
    assert result.ours == pytest.approx(2)


def test_a_row_that_may_not_decide_is_context(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "published.yaml").write_text(yaml.safe_dump({"rows": [{**ROW, "gate": False}]}))
    with pytest.raises(SpecError, match="write 'kind: context'"):
        judged(tmp_path, SERVED, one_rank_takes_twice_as_long)
