"""From records on disk to verdicts: which launches count, how they are paired, and the message for missing ones."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from scaleproof.claims.claims_file import ClaimResult, read_claims, write_claims
from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.metrics import METRICS
from scaleproof.cli import main
from scaleproof.core.record_schema import SAMPLES, Failure, Warning
from scaleproof.record.machine import write_profile
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import Suite, load_suite
from tests.noise_floors import TRAINING, calibrate_for_suite, floor, profile_of
from tests.unit.claims.claims_samples import SUITE_OF_A_TRAINING, record, samples, step

SUITE = (
    SUITE_OF_A_TRAINING
    + """\
    arms:
      gloo: {transport: gloo}
      tcp: {transport: tcp, collective: ring}
      alone: {strategy: local_only, transport: null}
    sizes:
      smoke:
        launches: 6
        matrix: [{arms: [gloo, tcp]}, {arms: [alone], sweep: {ranks: [1, 2]}}]
      full:
        launches: 6
        matrix:
        - {arms: [gloo], set: {minibatch: 64}}
"""
)
SPEEDUP: dict[str, Any] = {
    "id": "mine.own.speedup",
    "origin": "own",
    "statement": "s",
    "unit": "x",
    "direction": "higher",
    "experiment": "speed",
    "metric": "speedup",
    "select": {"transport": "gloo"},
    "against": {"ranks": 1},
    "rule": {"name": "at_least", "value": 1.5},
}
Length = Callable[[PlannedLaunch], float]


Change = Callable[[PlannedLaunch], dict[str, Any] | None]


def judged(
    tmp_path: Path, claim: dict[str, Any], length: Length, change: Change = lambda launch: {}, matrix: str = ""
) -> ClaimResult:
    """The claim after launches whose steps take `length` ms; `change` gives fields of a record, None for a launch that
    is missing. A machine without a profile gets one without noise."""
    suite = a_suite(tmp_path, claim, matrix)
    if not (tmp_path / "results" / "machines").exists():
        calibrate_for_suite(tmp_path / "results", suite, "smoke")
    store = Store(tmp_path / "results")
    for launch in plan(suite, "speed", "smoke"):
        fields = change(launch)
        if fields is not None:
            commit(store, launch, length(launch), fields)
    (result,) = judge_suite(suite, "smoke", store)
    return result


def a_suite(tmp_path: Path, claim: dict[str, Any], matrix: str = "") -> Suite:
    folder = tmp_path / "mine"
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "suite.yaml").write_text(SUITE.replace("matrix: [", f"matrix: [{matrix}"))
    (folder / "claims.yaml").write_text(yaml.safe_dump([claim]))
    return load_suite("mine", tmp_path)


def commit(store: Store, launch: PlannedLaunch, length: float, fields: dict[str, Any]) -> None:
    fields = {**fields}
    rows: list[Any] = [(0, "test_accuracy", 1, 2 * length, 2 * length, 0, fields.pop("accuracy", 0.0))]
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
    """Lengths of steps with a drift that all launches of a block share."""
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
    result = judged(
        tmp_path, SPEEDUP, one_rank_takes_twice_as_long, lambda launch: None if launch.plan_index == 5 else {}
    )
    assert (result.verdict, result.n) == ("inconclusive", 5)
    assert "5 of 6 planned launches finished" in result.reason


def test_only_blocks_with_both_sides_are_paired(tmp_path: Path) -> None:
    missing = {("gloo", 0), (None, 5)}
    result = judged(
        tmp_path,
        SPEEDUP,
        one_rank_takes_twice_as_long,
        lambda launch: None if (launch.case.transport, launch.plan_index) in missing else {},
    )
    assert (result.n, len(result.runs)) == (4, 8)
    assert result.ours == pytest.approx(2)


def test_launches_of_other_code_are_left_out_and_counted(tmp_path: Path) -> None:
    old = {"machine": "other", "started_at": "2025-01-01T00:00:00Z"}
    result = judged(
        tmp_path, SPEEDUP, one_rank_takes_twice_as_long, lambda launch: old if launch.plan_index == 0 else {}
    )
    assert result.n == 5
    assert "4 launches of other machines or code versions left out" in result.reason


def test_failed_launches_are_no_result(tmp_path: Path) -> None:
    failure = Failure(code="rank_killed", rank=1, message="m", step=1, operation="forward", advice="a")
    failed = {"status": "failed", "failure": failure}
    result = judged(
        tmp_path,
        SPEEDUP,
        one_rank_takes_twice_as_long,
        lambda launch: failed if launch.case.transport == "gloo" else {},
    )
    assert (result.verdict, result.ours) == ("not run at this size", None)
    assert result.reason == "none of 6 planned launches finished, 6 failed"


def test_a_claim_that_could_not_run_here_says_why(tmp_path: Path) -> None:
    failure = Failure(
        code="not_runnable", rank=-1, message="torch is not installed", step=-1, operation="", advice="type `make env`"
    )
    absent = {"status": "not_runnable", "failure": failure}
    result = judged(
        tmp_path,
        SPEEDUP,
        one_rank_takes_twice_as_long,
        lambda launch: absent if launch.case.transport == "gloo" else {},
    )
    assert (result.verdict, result.reason) == ("not runnable here", "torch is not installed; type `make env`")


def test_a_control_without_the_effect_leaves_the_verdict(tmp_path: Path) -> None:
    claim = {
        **SPEEDUP,
        "id": "mine.own.exposed",
        "metric": "exposed_communication_s",
        "unit": "s",
        "direction": "lower",
        "select": {"strategy": "local_only", "ranks": 2},
        "rule": {"name": "equal_to_tolerance", "value": 0, "tolerance": 0},
        "control": {"statement": "exchange", "select": {"transport": "tcp"}},
    }
    del claim["against"]
    result = judged(tmp_path, claim, lambda launch: 100)
    assert result.verdict == "reproduced"
    assert result.control is not None
    assert (result.control.shows_effect, result.control.n) == (False, 6)
    assert "the control does not show the effect: 6 launches from 0.0005 to 0.0005" in result.rule


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
    claim = {
        **SPEEDUP,
        "metric": "max_loss_difference",
        "unit": "1",
        "direction": "lower",
        "rule": {"name": "equal_to_tolerance", "value": 0, "tolerance": 1},
    }
    result = judged(tmp_path, claim, lambda launch: 100)
    assert result.interval is not None
    broken = result.model_copy(
        update={"ours": math.inf, "interval": result.interval.model_copy(update={"high": math.inf})}
    )
    write_claims(tmp_path / "claims.json", [broken])
    assert read_claims(tmp_path / "claims.json").claims == (broken,)


def test_each_level_of_evidence_has_a_result_of_its_own(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, SPEEDUP)
    store = Store(tmp_path / "results")
    for launch in plan(suite, "speed", "smoke"):
        for evidence, length in (("measured", 100), ("emulated", 50)):
            commit(
                store,
                launch,
                length,
                {"evidence": evidence, "launch": f"{launch.case.case_id}{launch.plan_index}{evidence}"},
            )
    assert [(result.evidence, result.n) for result in judge_suite(suite, "smoke", Store(tmp_path / "results"))] == [
        ("emulated", 6),
        ("measured", 6),
    ]


ROW: dict[str, Any] = {
    "id": "mine.row",
    "paper": "p",
    "statement": "s",
    "metric": "speedup",
    "unit": "x",
    "direction": "higher",
    "x": {},
    "value": 2,
    "baseline": None,
    "where": None,
    "source": "made up for this test",
    "provenance": "paper",
    "gate": True,
}
SERVED: dict[str, Any] = {
    "id": "mine.row",
    "experiment": "speed",
    "metric": "speedup",
    "select": {"transport": "gloo"},
    "against": {"ranks": 1},
    "rule": {"name": "within", "tolerance": 0.1},
}


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
def test_provenance_says_whether_a_row_is_judged(
    tmp_path: Path, row: dict[str, Any], kind: str, verdict: str | None
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "published.yaml").write_text(yaml.safe_dump({"rows": [{**ROW, **row}]}))
    result = judged(tmp_path, {**SERVED, "kind": kind}, one_rank_takes_twice_as_long)
    assert (result.verdict, result.published) == (verdict, {**ROW, **row}["value"])
    assert result.ours == pytest.approx(2)


@pytest.mark.parametrize(("width", "unit", "marked"), [(0.25, "x", True), (1, "x", False), (0.25, "bool", False)])
def test_a_value_of_a_reduced_network_beside_the_papers_is_marked(
    tmp_path: Path, width: float, unit: str, marked: bool
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "published.yaml").write_text(yaml.safe_dump({"rows": [{**ROW, "unit": unit}]}))
    reduced = f"{{arms: [gloo, alone], set: {{workload: {{name: cd_dnn, width: {width}}}, minibatch: 16}}}}, "
    claim = {**SERVED, "select": {"transport": "gloo", "minibatch": 16}, "against": {"transport": None}}
    result = judged(tmp_path, claim, lambda launch: 100, matrix=reduced)
    assert bool(result.reduced) == marked
    expected = "reduced, not comparable: the full network takes 6.91 times the work per sample" if marked else ""
    assert result.reduced_text == expected


def test_our_own_claims_stand_beside_no_published_value(tmp_path: Path) -> None:
    reduced = "{arms: [gloo, alone], set: {workload: {name: cd_dnn, width: 0.25}, ranks: 2}}, "
    claim = {**SPEEDUP, "select": {"transport": "gloo", "workload.width": 0.25}, "against": {"transport": None}}
    assert judged(tmp_path, claim, lambda launch: 100, matrix=reduced).reduced == ()


def test_details_of_the_evidence_are_part_of_the_result(tmp_path: Path) -> None:
    slow = {"evidence": "emulated", "warnings": [Warning(code="link", message="m", advice="a")]}
    result = judged(tmp_path, SPEEDUP, one_rank_takes_twice_as_long, lambda launch: slow)
    assert (result.evidence_details, result.evidence_text) == (
        ("links missed",),
        "emulated, links missed (not validated here)",
    )


def test_a_row_that_may_not_decide_is_context(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "published.yaml").write_text(yaml.safe_dump({"rows": [{**ROW, "gate": False}]}))
    with pytest.raises(SpecError, match="write 'kind: context'"):
        judged(tmp_path, SERVED, one_rank_takes_twice_as_long)


def without_alone(launch: PlannedLaunch) -> dict[str, Any] | None:
    return None if launch.case.transport is None else {}


def only_gloo(launch: PlannedLaunch) -> dict[str, Any] | None:
    return {} if launch.case.transport == "gloo" else None


ORDER: dict[str, Any] = {
    **SPEEDUP,
    "metric": "step_s",
    "direction": "lower",
    "against": {"transport": "tcp"},
    "rule": {"name": "ordering"},
}


def gloo_is_faster(share: float) -> Length:
    """Lengths that differ by this share, with noise of about 1 % that differs from block to block."""
    return lambda launch: 100 * (1 + 0.002 * launch.plan_index) / (1 + share if launch.case.transport == "gloo" else 1)


def calibrated(tmp_path: Path, share: float, machine: str = "m") -> None:
    kinds = (TRAINING.model_copy(update={"transport": transport}) for transport in ("gloo", "tcp"))
    floors = [floor("step_s", kind, share=share) for kind in kinds]
    write_profile(tmp_path / "results", profile_of(*floors, machine=machine))


@pytest.mark.parametrize(("share", "verdict"), [(0.02, "reproduced"), (0.08, "inconclusive")])
def test_an_ordering_below_the_noise_floor_of_the_records_machine_is_none(
    tmp_path: Path, share: float, verdict: str
) -> None:
    calibrated(tmp_path, share)
    result = judged(tmp_path, ORDER, gloo_is_faster(0.05), without_alone)
    assert (result.verdict, result.noise_floor) == (verdict, share)
    assert f"noise floor {100 * share:g} %" in result.rule


@pytest.mark.parametrize(("bound", "verdict"), [(0.2, "reproduced"), (0.101, "inconclusive")])
def test_a_time_alone_must_be_further_from_its_bound_than_the_floor(tmp_path: Path, bound: float, verdict: str) -> None:
    calibrated(tmp_path, 0.02)
    claim = {**ORDER, "rule": {"name": "at_most", "value": bound}}
    del claim["against"]
    result = judged(tmp_path, claim, lambda launch: 100, only_gloo)
    assert (result.verdict, result.noise_floor) == (verdict, 0.02)


def test_a_timing_without_a_floor_decides_nothing_and_says_how_to_get_one(tmp_path: Path) -> None:
    calibrated(tmp_path, 0.0, machine="another")
    result = judged(tmp_path, ORDER, gloo_is_faster(0.05), without_alone)
    assert (result.verdict, result.noise_floor) == ("inconclusive", None)
    assert "no noise floor known" in result.rule and "type scaleproof calibrate" in result.reason


@pytest.mark.parametrize("change", [{"shared_cores": True}, {"case": {"compute": "none"}}])
def test_a_floor_of_another_kind_of_launch_does_not_count(tmp_path: Path, change: dict[str, Any]) -> None:
    calibrated(tmp_path, 0.0)
    claim = {**ORDER, "rule": {"name": "at_most", "value": 0.2}}
    del claim["against"]
    fields = {name: value for name, value in change.items() if name != "case"}
    matrix = "{arms: [gloo], set: {compute: none}}, " if "case" in change else ""
    select = {"compute": "none"} if matrix else {"compute": "real"}
    result = judged(
        tmp_path, {**claim, "select": {**claim["select"], **select}}, lambda launch: 100, lambda launch: fields, matrix
    )
    assert result.verdict == "inconclusive"
    assert "scaleproof calibrate mine --size smoke" in result.reason and result.reason in "; ".join(result.warnings)


def test_a_profile_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    calibrated(tmp_path, 0.02)
    (tmp_path / "results" / "machines" / "m" / "profile.json").write_text("{}")
    with pytest.raises(SpecError, match="profile.json: no profile of this version; `scaleproof calibrate` writes"):
        judged(tmp_path, ORDER, gloo_is_faster(0.05), without_alone)


def crowded(launch: PlannedLaunch) -> dict[str, Any]:
    return {"oversubscribed": launch.case.ranks == 2, "environment": {"cores": 1}}


def test_times_of_oversubscribed_launches_judge_nothing(tmp_path: Path) -> None:
    result = judged(tmp_path, SPEEDUP, one_rank_takes_twice_as_long, crowded)
    assert (result.verdict, result.ours) == ("not runnable here", None)
    assert "all 6 launches are oversubscribed (2 ranks with 1 thread on 1 cores)" in result.reason


def test_a_base_of_another_level_that_is_oversubscribed_judges_nothing_either(tmp_path: Path) -> None:
    claim = {**SPEEDUP, "select": SPEEDUP["against"], "against": SPEEDUP["select"], "base_evidence": "emulated"}

    def fields(launch: PlannedLaunch) -> dict[str, Any]:
        emulated = launch.case.ranks == 2
        return crowded(launch) | {"evidence": "emulated" if emulated else "simulated"}

    result = judged(tmp_path, claim, one_rank_takes_twice_as_long, fields)
    assert (result.verdict, result.evidence) == ("not runnable here", "simulated")
    assert "all 6 launches are oversubscribed" in result.reason


def test_some_oversubscribed_launches_are_left_out_and_named(tmp_path: Path) -> None:
    claim = {**SPEEDUP, "select": {"ranks": [1, 2]}, "metric": "step_s", "rule": {"name": "at_most", "value": 0.3}}
    del claim["against"]
    result = judged(tmp_path, claim, one_rank_takes_twice_as_long, crowded)
    assert (result.verdict, result.n) == ("inconclusive", 6)
    assert "18 oversubscribed launches left out: 2 ranks with 1 thread on 1 cores" in result.warnings


@pytest.mark.parametrize(("repetitions", "counted"), [(4, 2), (6, None)])
def test_launches_that_saturated_the_cores_are_excluded_and_counted(
    tmp_path: Path, repetitions: int, counted: int | None
) -> None:
    def saturated(launch: PlannedLaunch) -> dict[str, Any]:
        crowded = launch.plan_index < repetitions and launch.case.ranks == 2
        return {"warnings": [Warning(code="saturated", message="m", advice="a")] if crowded else []}

    result = judged(tmp_path, SPEEDUP, one_rank_takes_twice_as_long, saturated)
    assert result.n == counted
    assert f"{repetitions} of 12 launches excluded: saturated" in (*result.warnings, *result.reason.split("; "))


def test_equality_may_use_oversubscribed_launches(tmp_path: Path) -> None:
    claim = {
        **SPEEDUP,
        "metric": "max_loss_difference",
        "unit": "1",
        "rule": {"name": "equal_to_tolerance", "value": 0, "tolerance": 0.001},
    }
    result = judged(tmp_path, claim, one_rank_takes_twice_as_long, crowded)
    assert result.verdict == "reproduced"
    assert "6 of 12 launches were oversubscribed: 2 ranks with 1 thread on 1 cores" in result.warnings


@pytest.mark.parametrize("field", ["tracing: full", "handicap: 0.5"])
def test_traced_and_slowed_launches_feed_only_claims_that_name_them(tmp_path: Path, field: str) -> None:
    matrix, (name, value) = "{arms: [gloo], set: {" + field + "}}, ", field.split(": ")
    claim = {
        **ORDER,
        "metric": "final_loss",
        "unit": "nat",
        "select": {"transport": "gloo"},
        "rule": {"name": "at_most", "value": 2},
    }
    del claim["against"]
    plain = judged(tmp_path, claim, lambda launch: 100, only_gloo, matrix=matrix)
    assert (plain.verdict, plain.n) == ("reproduced", 6)
    named = {**claim, "select": {"transport": "gloo", name: yaml.safe_load(value)}}
    changed = judged(tmp_path, named, lambda launch: 100, lambda launch: None, matrix=matrix)
    assert changed.n == 6
    assert not set(plain.runs) & set(changed.runs)


def test_outliers_are_warned_of_and_stay_in(tmp_path: Path) -> None:
    claim = {**ORDER, "rule": {"name": "at_most", "value": 2}}
    del claim["against"]
    result = judged(
        tmp_path, claim, lambda launch: 500 if launch.plan_index == 3 else 100 + launch.plan_index, only_gloo
    )
    assert result.n == 6
    (line,) = result.warnings
    assert line.startswith("1 of 6 launches outside Tukey's fences, kept: ") and line.endswith("(0.5)")


def test_few_launches_are_warned_of(tmp_path: Path) -> None:
    result = judged(
        tmp_path, SPEEDUP, one_rank_takes_twice_as_long, lambda launch: None if launch.plan_index == 5 else {}
    )
    assert {"5 of 6 planned launches finished", "only 5 launches a side: no 95 % interval"} <= set(result.warnings)


RANKS = "{arms: [tcp], set: {ranks: 1}}, {arms: [tcp], set: {ranks: 4}}, "
MONOTONE: dict[str, Any] = {
    **ORDER,
    "select": {"transport": "tcp"},
    "rule": {"name": "monotone", "along": "ranks", "trend": "falling"},
}
del MONOTONE["against"]


@pytest.mark.parametrize(
    ("length", "verdict"), [({1: 400, 2: 200, 4: 100}, "reproduced"), ({1: 400, 2: 200, 4: 200}, "inconclusive")]
)
def test_a_trend_along_ranks_is_judged_step_by_step(tmp_path: Path, length: dict[int, float], verdict: str) -> None:
    def alternating(launch: PlannedLaunch) -> float:
        """Noise that hides the difference between equal levels."""
        return length[launch.case.ranks] * (1 + 0.01 * ((launch.plan_index + launch.case.ranks // 2) % 2))

    result = judged(
        tmp_path, MONOTONE, alternating, lambda launch: {} if launch.case.transport == "tcp" else None, RANKS
    )
    assert result.verdict == verdict
    assert "ranks=1 to ranks=2" in result.rule and "ranks=2 to ranks=4" in result.rule
    assert (result.n, len(result.runs)) == (6, 18)
    assert result.base is not None and result.base.select == {"transport": "tcp", "ranks": 1}


def test_an_order_of_three_arms_is_claimed_best_first(tmp_path: Path) -> None:
    claim = {
        **ORDER,
        "select": {"ranks": 2},
        "arms": [{"transport": "gloo"}, {"transport": "tcp"}, {"strategy": "local_only"}],
    }
    del claim["against"]
    length = {"gloo": 100, "tcp": 200, None: 300}
    assert (
        judged(tmp_path, claim, lambda launch: length[launch.case.transport] + launch.plan_index).verdict
        == "reproduced"
    )


def test_an_order_with_an_arm_missing_was_not_run(tmp_path: Path) -> None:
    claim = {**ORDER, "select": {"ranks": 2}, "arms": [{"transport": "gloo"}, {"transport": "tcp"}]}
    del claim["against"]
    missing = judged(tmp_path, claim, lambda launch: 100, only_gloo)
    assert missing.verdict == "not run at this size"
    assert missing.reason == "no launch gave step_s in enough arms; none of 6 planned launches finished, 0 failed"


def test_a_ratio_without_its_base_was_not_run(tmp_path: Path) -> None:
    result = judged(tmp_path, SPEEDUP, lambda launch: 100, only_gloo)
    assert (result.verdict, result.evidence) == ("not run at this size", "measured")
    assert result.reason.endswith("none of 6 planned launches finished, 0 failed")


def test_a_size_that_plans_no_launch_of_a_claim_did_not_run_it(tmp_path: Path) -> None:
    result = judged(tmp_path, {**SPEEDUP, "select": {"minibatch": 64}}, lambda launch: 100)
    assert (result.verdict, result.reason) == ("not run at this size", "size smoke plans none of its launches")


def test_an_order_is_judged_at_the_levels_of_its_arms_alone(tmp_path: Path) -> None:
    claim = {**ORDER, "select": {}, "arms": [{"transport": "gloo"}, {"transport": "tcp"}]}
    del claim["against"]
    other = {"evidence": "emulated"}
    result = judged(tmp_path, claim, lambda launch: 100, lambda launch: {} if launch.case.transport else other)
    assert result.evidence == "measured", "launches of no arm give no result at their level"


def test_launches_without_the_message_size_of_a_claim_are_none_behind_it(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    base = "base: {program: collective, collective: ring, transport: tcp, ranks: 2, sizes: [1 KiB], iterations: 2}"
    sizes = "sizes: {smoke: {launches: 6, matrix: [{arms: [a]}]}}"
    experiment = f"speed: {{summary: s, {base}, arms: {{a: {{}}}}, {sizes}}}"
    (folder / "suite.yaml").write_text(f"suite: mine\ntitle: t\nexperiments: {{{experiment}}}\n")
    latency = {**SPEEDUP, "metric": "collective_latency", "select": {"arm": "a"}, "nbytes": 4096}
    del latency["against"]
    (folder / "claims.yaml").write_text(yaml.safe_dump([latency]))
    suite, store = load_suite("mine", tmp_path), Store(tmp_path / "results")
    for launch in plan(suite, "speed", "smoke"):
        commit(store, launch, 100, {})
    (result,) = judge_suite(suite, "smoke", store)
    assert (result.verdict, result.evidence) == ("not run at this size", "measured")
    assert result.reason.endswith("size smoke sends no messages of 4096 bytes")


def test_launches_without_a_value_are_inconclusive(tmp_path: Path) -> None:
    claim = {**SPEEDUP, "metric": "time_to_quality", "rule": {"name": "ordering"}}
    result = judged(tmp_path, claim, lambda launch: 100)
    assert (result.verdict, result.ours, result.reason) == (
        "inconclusive",
        None,
        "no launch gave time_to_quality on both sides",
    )


@pytest.mark.parametrize("key", ["against", "control"])
def test_a_ratio_has_no_value_per_launch_for_an_equality(tmp_path: Path, key: str) -> None:
    claim = {**SPEEDUP, "metric": "step_s", "rule": {"name": "equal_to_tolerance", "value": 1, "tolerance": 0.5}}
    if key == "control":
        against = claim.pop("against")
        claim["control"] = {"statement": "s", "select": claim["select"], "against": against}
    with pytest.raises(SpecError, match=rf"claims.yaml:\d+: .*{key}: .*rule 'equal_to_tolerance' judges every launch"):
        judged(tmp_path, claim, lambda launch: 100, lambda launch: None)


def test_a_floor_is_no_tolerance_of_what_no_clock_measures(tmp_path: Path) -> None:
    claim = {**SPEEDUP, "metric": "final_loss", "rule": {"name": "within", "value": 1, "tolerance": "floor"}}
    del claim["against"]
    with pytest.raises(SpecError, match=r"claims.yaml:\d+: .*rule: .*needs a metric that comes from clocks"):
        judged(tmp_path, claim, lambda launch: 100, lambda launch: None)


def test_no_clock_of_launches_that_run_beside_others_is_judged(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, SPEEDUP)
    load_claims(suite)
    suite.experiments["speed"] = replace(suite.experiment("speed"), timed=False)
    with pytest.raises(SpecError, match=r"claims.yaml:\d+: .*metric: .*'speed' run beside others .*'timed: false'"):
        load_claims(suite)


WINS = """
from scaleproof.claims.beyond_floor import FloorRange
from scaleproof.claims.metrics import Metric


def wins(block, floor):
    return FloorRange(0.0, 0.0, 1.0) if block[0].record.case.ranks == 1 else FloorRange(1.0, 1.0, 1.0)


METRICS = [Metric("wins", "1", "higher", block=wins, noise="inside")]
"""
WON = {"name": "at_least", "value": 0.5}


@pytest.mark.parametrize(("ranks", "verdict"), [(2, "reproduced"), (1, "inconclusive")])
def test_what_lies_within_the_floor_refutes_no_claim_and_is_no_effect_in_its_control(
    ranks: int, verdict: str, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "models.py").write_text(WINS)
    fields = {"metric": "wins", "select": {"ranks": ranks, "minibatch": 8}, "rule": WON}
    claim = {
        **SPEEDUP,
        **fields,
        "control": {"statement": "one rank wins nothing", "select": {"ranks": 1, "minibatch": 16}},
    }
    del claim["against"]
    other = "{arms: [alone], set: {ranks: 1, minibatch: 16}}, "
    result = judged(tmp_path, claim, lambda launch: 100, matrix=other)
    assert result.control is not None
    assert (result.verdict, result.control.shows_effect) == (verdict, False)


def test_an_order_needs_something_to_compare_with(tmp_path: Path) -> None:
    claim = {**ORDER}
    del claim["against"]
    with pytest.raises(SpecError, match="rule 'ordering' compares: give 'against' or 'arms'"):
        judged(tmp_path, claim, lambda launch: 100, lambda launch: None)
    with pytest.raises(SpecError, match="no case has the field 'rank'"):
        judged(
            tmp_path,
            {**MONOTONE, "rule": {"name": "monotone", "along": "rank", "trend": "rising"}},
            lambda launch: 100,
            lambda launch: None,
        )


def test_each_verdict_has_its_acm_term(tmp_path: Path) -> None:
    def attempt(claim: dict[str, Any]) -> str | None:
        return judged(tmp_path, claim, one_rank_takes_twice_as_long, lambda launch: None).attempt

    assert attempt(SPEEDUP) == "repeatability"
    assert attempt({**SPEEDUP, "kind": "check"}) is None
    (tmp_path / "mine" / "published.yaml").write_text(yaml.safe_dump({"rows": [ROW]}))
    assert attempt(SERVED) == "replication"
    assert attempt({**SERVED, "attempt": "reproduction"}) == "reproduction"
    assert attempt({**SERVED, "kind": "consistency"}) is None


@pytest.mark.parametrize(("least", "verdict"), [(1.5, "holds"), (2.5, "fails")])
def test_a_check_holds_or_fails(tmp_path: Path, least: float, verdict: str) -> None:
    check = {**SPEEDUP, "kind": "check", "rule": {"name": "at_least", "value": least}}
    result = judged(tmp_path, check, one_rank_takes_twice_as_long)
    assert (result.kind, result.verdict) == ("check", verdict)
    assert result.outcome is not None and result.outcome.verdict == verdict


def test_the_terminal_has_checks_in_a_table_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_suite(tmp_path, SPEEDUP)
    entries = [SPEEDUP, {**SPEEDUP, "id": "mine.own.check", "kind": "check"}]
    (tmp_path / "mine" / "claims.yaml").write_text(yaml.safe_dump(entries))
    results = ["--results", str(tmp_path / "results"), "--suites", str(tmp_path)]
    assert main(["judge", "mine", "--size", "smoke", *results]) == 0
    claims, _, checks = capsys.readouterr().out.partition("mine smoke: checks of our own code, counted apart")
    assert "mine.own.speedup" in claims and "mine.own.check" not in claims
    assert "mine.own.check" in checks and "mine.own.speedup" not in checks


def test_what_our_own_code_counts_is_no_claim(tmp_path: Path) -> None:
    counted = {**SPEEDUP, "metric": "bytes_per_rank_ratio"}
    del counted["against"]
    with pytest.raises(SpecError, match="about the world: write 'kind: check'"):
        judged(tmp_path / "claim", counted, one_rank_takes_twice_as_long)
    assert judged(tmp_path / "check", {**counted, "kind": "check"}, one_rank_takes_twice_as_long).kind == "check"


def test_what_a_model_predicts_for_what_was_not_run_is_shown_and_never_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METRICS, "speedup", replace(METRICS["speedup"], predicts=True))
    with pytest.raises(SpecError, match="no launch can refute it: write 'kind: context'"):
        judged(tmp_path / "claim", SPEEDUP, one_rank_takes_twice_as_long)
    shown = judged(tmp_path / "shown", {**SPEEDUP, "kind": "context"}, one_rank_takes_twice_as_long)
    assert shown.ours is not None and shown.verdict is None
    assert shown.evidence_text.startswith("measured, then predicted by a model")


@pytest.mark.parametrize(("failing", "score"), [(1, "0.207 s"), (2, "none")])
def test_a_launch_that_did_not_converge_is_the_slowest_of_the_score_and_of_the_number(
    tmp_path: Path, failing: int, score: str
) -> None:
    matrix = "{arms: [gloo], set: {workload: {name: dnn_digits, data: digits}, evaluate_every: 1}}, "
    claim = {
        **ORDER,
        "metric": "time_to_quality",
        "unit": "s",
        "select": {"workload.data": "digits"},
        "rule": {"name": "at_most", "value": 1},
    }
    del claim["against"]

    def learned(launch: PlannedLaunch) -> dict[str, Any] | None:
        return {"accuracy": 0.5 if launch.plan_index < failing else 0.96} if launch.case.arm == "gloo" else None

    result = judged(tmp_path, claim, lambda launch: 100 + launch.plan_index, learned, matrix)
    assert (result.verdict, result.n) == ("inconclusive", 6)
    assert f"MLPerf score {score} (workload.data digits): " in result.reason and f"{failing} " in result.reason
    assert f"{failing} of 6 launches (workload.data digits) have no number" in result.reason
    assert "not reached, best 0.5 of 0.95" + (" (2)" if failing > 1 else "") in result.reason
