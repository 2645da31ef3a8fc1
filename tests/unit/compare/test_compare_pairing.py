"""Which cases and launches may be compared; all others are listed with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.compare.case_groups import groups
from scaleproof.compare.case_pairs import pair_cases, pair_launches
from scaleproof.compare.comparison_schema import NotPaired
from scaleproof.compare.side_selection import select
from scaleproof.spec.errors import SpecError
from scaleproof.stats.arm_difference import DifferenceReason
from tests.short_form import case_from
from tests.unit.compare.compare_records import FAST, calibrate, code, compared, launches
from tests.unit.records import case, record


def small(**fields: Any) -> Any:
    return case(**{"sizes": [1024], "arm": "plain", "transport": "tcp", **fields})


def train(**fields: Any) -> Any:
    base = {
        "program": "train",
        "suite": "s",
        "experiment": "e",
        "arm": "plain",
        "ranks": 2,
        "transport": "gloo",
        "strategy": "sync",
        "workload": "dnn_digits",
    }
    return case_from({**base, "minibatch": 8, "steps": 2, **fields})


def paired(results: Path, a: str, b: str) -> tuple[list[list[str]], list[str]]:
    """The differing fields of each pair, and the reasons why others are not paired."""
    sides = select(a, results), select(b, results)
    pairs, unpaired = pair_cases(groups(sides[0].records), groups(sides[1].records), sides)
    return [[field.name for field in pair.differs] for pair in pairs], [row.reason for row in unpaired]


def test_equal_cases_are_pairs_whatever_else_there_is(tmp_path: Path) -> None:
    launches(tmp_path, FAST[:1], "a", case=small())
    launches(tmp_path, FAST[:1], "b", case=small(arm="other", sizes=[2048]))
    assert paired(tmp_path, "", "") == ([[], []], [])


def test_arms_are_paired_over_what_arms_vary_and_the_fields_are_named(tmp_path: Path) -> None:
    launches(tmp_path, FAST[:1], "a", case=small())
    launches(tmp_path, FAST[:1], "b", case=small(arm="other", transport="gloo", collective="native"))
    assert paired(tmp_path, "@arm:plain", "@arm:other") == ([["arm", "transport", "collective"]], [])


@pytest.mark.parametrize(
    "field",
    [
        {"ranks": 4},
        {"dtype": "float64"},
        {"handicap": 0.5},
        {"tracing": "full"},
        {"sizes": [2048]},
        {"threads_per_rank": 2},
    ],
)
def test_cases_that_measure_different_things_are_never_paired_silently(field: dict[str, Any], tmp_path: Path) -> None:
    launches(tmp_path, FAST[:1], "a", case=small())
    launches(tmp_path, FAST[:1], "b", case=small(arm="other", **field))
    pairs, reasons = paired(tmp_path, "@arm:plain", "@arm:other")
    assert (
        pairs == [] and len(reasons) == 2 and all(f"differs in {next(iter(field))} (" in reason for reason in reasons)
    )


@pytest.mark.parametrize(
    "field",
    [
        {"workload.data": "digits"},
        {"workload.width": 0.5},
        {"workload.image_side": 8},
        {"minibatch": 16},
        {"workload": "vgg_digits"},
        {"compute": "none"},
    ],
)
def test_other_data_networks_and_batches_are_never_paired_silently(field: dict[str, Any], tmp_path: Path) -> None:
    for name, fields in (("a", {}), ("b", field)):
        launches(tmp_path, (1.0,), name, case=train(arm=name, **fields), status="failed")
    pairs, reasons = paired(tmp_path, "@arm:a", "@arm:b")
    assert pairs == [] and all(f"differs in {next(iter(field))} (" in reason for reason in reasons)


def test_an_option_at_its_default_is_shown_with_its_value(tmp_path: Path) -> None:
    for name, fields in (("a", {}), ("b", {"workload.width": 0.5})):
        launches(tmp_path, (1.0,), name, case=train(arm=name, **fields), status="failed")
    _, reasons = paired(tmp_path, "@arm:a", "@arm:b")
    assert "workload.width (1 here, 0.5 there)" in reasons[0]


def test_a_side_may_name_an_option_at_its_default(tmp_path: Path) -> None:
    for name, fields in (("a", {}), ("b", {"workload.width": 0.5})):
        launches(tmp_path, FAST[:1], name, case=train(arm=name, **fields))
    assert paired(tmp_path, "@workload.width:1", "@workload.width:0.5")[0] == [["arm", "workload.width"]]
    with pytest.raises(SpecError, match="unknown key 'width'; did you mean 'workload.width'"):
        paired(tmp_path, "@width:1", "@width:0.5")


def test_a_field_that_both_sides_name_may_differ(tmp_path: Path) -> None:
    launches(tmp_path, FAST[:1], "a", case=small())
    launches(tmp_path, FAST[:1], "b", case=small(arm="slow", handicap=0.5))
    assert paired(tmp_path, "@handicap:0", "@handicap:0.5") == ([["arm", "handicap"]], [])
    assert paired(tmp_path, "@arm:plain", "@arm:slow,handicap:0.5")[0] == []


def test_two_cases_or_launches_named_outright_may_be_other_arms(tmp_path: Path) -> None:
    launches(tmp_path, FAST[:1], "a", case=small())
    launches(tmp_path, FAST[:1], "b", case=small(arm="other", collective="tree"))
    assert paired(tmp_path, "a00", "b00")[0] == [["arm", "collective"]]


def test_cases_that_differ_in_their_arm_alone_are_paired_before_those_that_differ_in_more(tmp_path: Path) -> None:
    for name in ("x", "y"):
        launches(tmp_path, FAST[:1], f"a{len(name)}{ord(name)}", case=small(arm=name))
        launches(tmp_path, FAST[:1], f"b{len(name)}{ord(name)}", case=small(arm=name, collective="tree"))
    assert paired(tmp_path, "@arm:x", "@arm:y") == ([["arm"], ["arm"]], [])


def test_several_cases_that_fit_are_no_pair(tmp_path: Path) -> None:
    launches(tmp_path, FAST[:1], "a", case=small())
    launches(tmp_path, FAST[:1], "b", case=small(arm="x", collective="tree"))
    launches(tmp_path, FAST[:1], "c", case=small(arm="y", collective="halving_doubling"))
    pairs, reasons = paired(tmp_path, "@arm:plain", "@arm:x,arm:y")
    assert pairs == [] and all("several cases would fit" in reason for reason in reasons)


def test_a_program_that_the_other_side_lacks_is_named(tmp_path: Path) -> None:
    launches(tmp_path, FAST[:1], "a", case=small())
    launches(tmp_path, (1.0,), "b", case=train(arm="b"), status="failed")
    assert paired(tmp_path, "@arm:plain", "@arm:b")[1] == [
        "B has no case of program 'collective'",
        "A has no case of program 'train'",
    ]


def test_traced_launches_are_compared_with_nothing(tmp_path: Path) -> None:
    launches(tmp_path, FAST[:1], "a", case=small(tracing="full"))
    pairs, reasons = paired(tmp_path, "", "")
    assert pairs == [] and reasons == ["its launches are traced; their numbers are never compared"] * 2


def test_measured_and_emulated_launches_are_never_paired(tmp_path: Path) -> None:
    launches(tmp_path, FAST[:1], "a", machine="m1")
    launches(tmp_path, FAST[:1], "b", machine="m2", evidence="emulated")
    pairs, reasons = paired(tmp_path, "@machine:m1", "@machine:m2")
    assert pairs == [] and "evidence (measured here, emulated there)" in reasons[0]


def test_of_a_case_the_last_code_and_of_a_repetition_the_last_launch_count(tmp_path: Path) -> None:
    launches(tmp_path, FAST[:3], "a", code=code(digest="old"))
    launches(tmp_path, FAST[:3], "b", at=1)
    launches(tmp_path, FAST[:1], "c", at=2)
    (group,) = groups(select("", tmp_path).records)
    assert [launch.launch for launch in group.launches] == ["c00", "b01", "b02"] and group.left_out == 4


def launch_of(index: int, started_at: str, **fields: Any) -> Any:
    return record(f"a{index}", plan_index=index, seed=index, started_at=started_at, **fields)


def test_launches_of_one_interleaved_run_are_paired_by_repetition() -> None:
    a = [launch_of(0, "2026-01-01T00:00:00"), launch_of(1, "2026-01-01T00:03:00"), launch_of(2, "2026-01-01T00:04:00")]
    b = [launch_of(1, "2026-01-01T00:02:00"), launch_of(0, "2026-01-01T00:01:00")]
    pairs, why = pair_launches(a, b)
    assert [(first.plan_index, second.plan_index) for first, second in pairs] == [(0, 0), (1, 1)] and why is None


def test_two_results_folders_that_were_filled_in_turns_are_paired_by_repetition() -> None:
    a, b = (
        [launch_of(index, f"2026-01-01T00:0{2 * index + late}:00", campaign_id=name) for index in range(2)]
        for late, name in enumerate(("base", "change"))
    )
    pairs, why = pair_launches(a, b)
    assert [(first.plan_index, second.plan_index) for first, second in pairs] == [(0, 0), (1, 1)] and why is None
    resumed = [a[0], a[1].model_copy(update={"campaign_id": "base after a pause"})]
    assert [(first.plan_index, second.plan_index) for first, second in pair_launches(resumed, b)[0]] == [(0, 0), (1, 1)]
    merged = [*a, launch_of(0, "2026-01-01T00:00:30", campaign_id="another of the same number")]
    assert pair_launches(merged, b) == ([], NotPaired.OTHER_SEEDS)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"started_at": "2026-01-02T00:00:00"}, NotPaired.ONE_AFTER_THE_OTHER),
        ({"started_at": "2026-01-01T00:00:00", "machine": "m2"}, NotPaired.OTHER_MACHINE),
        ({"started_at": "2026-01-01T00:00:00", "seed": 9}, NotPaired.OTHER_SEEDS),
    ],
)
def test_launches_that_cannot_be_paired_give_the_reason(other: dict[str, Any], reason: NotPaired) -> None:
    a, b = [launch_of(0, "2026-01-01T00:00:00")], [record("b", **{"plan_index": 0, "seed": 0, **other})]
    assert pair_launches(a, b) == ([], reason)


def test_a_difference_that_one_campaign_reverses_is_inconclusive(tmp_path: Path) -> None:
    """Arms in the same blocks: three campaigns in which the second arm is slower, and one in which it is faster."""
    for number in range(4):
        slower = 0.9 if number == 3 else 1.5
        fields: dict[str, Any] = {"first": 8 * number, "campaign": number, "campaign_id": f"c{number}", "at": number}
        for name, arm, factor in (("a", "plain", 1.0), ("b", "other", slower)):
            times = [factor * time for time in FAST]
            launches(tmp_path, times, f"{name}{number}", case=small(arm=arm, iterations=4, warmup=0), **fields)
    calibrate(tmp_path)
    comparison = compared(tmp_path, "@arm:plain", "@arm:other")
    assert comparison.pairs[0].paired
    assert {row.reason for row in comparison.rows} == {DifferenceReason.CAMPAIGNS_DISAGREE}
    assert {row.finding for row in comparison.rows} == {"inconclusive"}
    assert all((row.low or 9) < 0.95 and (row.high or 0) > 1.05 for row in comparison.rows)
