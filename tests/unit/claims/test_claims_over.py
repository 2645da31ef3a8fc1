"""Claims that are judged at several points: in every case that they are about, or over the range of a condition of
which the true value is not known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claim_form import ClaimForm
from scaleproof.record.machine import write_profile
from scaleproof.spec.plan import PlannedLaunch
from tests.noise_floors import TRAINING, floor, profile_of
from tests.unit.claims.test_judge import SPEEDUP, judged

SWEPT = "sweep: {workload.width: [0.25, 0.5, 1], minibatch: [16]}"
RANGE = f"{{arms: [gloo, alone], {SWEPT}}}, {{arms: [alone], set: {{ranks: 1}}, {SWEPT}}}, "
RANGE_OF: dict[str, Any] = {
    **SPEEDUP,
    "select": {"transport": "gloo", "minibatch": 16},
    "against": {"ranks": 1, "minibatch": 16},
    "over": ["workload.width"],
    "unknown": True,
}


def lengths(*of_two_ranks: float) -> Callable[[PlannedLaunch], float]:
    """Step of two ranks at width 0.25, 0.5 and 1, in ms, where one rank takes 100."""
    by_width = dict(zip((0.25, 0.5, 1), of_two_ranks, strict=True))

    def length(launch: PlannedLaunch) -> float:
        return 100 if launch.case.transport is None else by_width.get(launch.case.value("workload.width"), 100)

    return length


def test_a_verdict_that_is_the_same_at_every_point_holds_for_the_range(tmp_path: Path) -> None:
    result = judged(tmp_path, RANGE_OF, lengths(50, 55, 60), matrix=RANGE)
    assert result.verdict == "reproduced"
    assert result.rule.startswith(
        "the same at all 3 points of the range, each tested at its own 95 %; workload.width 0.25: 2 in [2, 2]"
    )
    assert result.ours == pytest.approx(100 / 55) and result.interval is not None
    assert (result.interval.low, result.interval.high) == (pytest.approx(100 / 60), pytest.approx(2))
    assert "around the intervals of 3 points" in result.interval.method
    assert len(result.runs) == 36 and result.n == 6 and result.base is not None


def test_one_point_that_disagrees_leaves_it_open(tmp_path: Path) -> None:
    result = judged(tmp_path, RANGE_OF, lengths(50, 55, 80), matrix=RANGE)
    assert result.verdict == "inconclusive"
    assert "does not hold over the whole range of 3 points" in result.rule and "workload.width 1: 1.25" in result.rule


def test_a_point_without_launches_leaves_it_open(tmp_path: Path) -> None:
    def without_one(launch: PlannedLaunch) -> dict[str, Any] | None:
        return None if launch.case.transport == "gloo" and launch.case.value("workload.width") == 0.5 else {}

    result = judged(tmp_path, RANGE_OF, lengths(50, 55, 60), without_one, RANGE)
    assert result.verdict == "inconclusive" and result.rule.startswith(
        "1 of 3 points of the range have no value (workload.width 0.5)"
    )


EVERY = {**RANGE_OF, "unknown": False}
EACH = ", each tested at its own 95 %, uncorrected"


@pytest.mark.parametrize(
    ("of_two_ranks", "verdict", "finding"),
    [
        ((50, 55, 60), "reproduced", f"the same in each of 3 cases{EACH}; workload.width 0.25: 2 in [2, 2]"),
        ((50, 55, 80), "not reproduced", f"not reproduced in 1 of 3 cases (workload.width 1){EACH}; "),
        ((80, 90, 80), "not reproduced", f"the same in each of 3 cases{EACH}; "),
    ],
)
def test_one_refuted_case_refutes_a_statement_about_every_case(
    tmp_path: Path, of_two_ranks: tuple[float, ...], verdict: str, finding: str
) -> None:
    result = judged(tmp_path, EVERY, lengths(*of_two_ranks), matrix=RANGE)
    assert result.verdict == verdict and result.rule.startswith(finding)


@pytest.mark.parametrize(("longest", "verdict"), [(60, "inconclusive"), (80, "not reproduced")])
def test_a_case_without_launches_leaves_it_open_unless_another_refutes_it(
    tmp_path: Path, longest: float, verdict: str
) -> None:
    def without_one(launch: PlannedLaunch) -> dict[str, Any] | None:
        return None if launch.case.transport == "gloo" and launch.case.value("workload.width") == 0.5 else {}

    assert judged(tmp_path, EVERY, lengths(50, 55, longest), without_one, RANGE).verdict == verdict


def test_an_identity_in_every_case_tests_nothing_at_a_level(tmp_path: Path) -> None:
    claim = {**EVERY, "metric": "final_loss", "rule": {"name": "equal_to_tolerance", "value": 1, "tolerance": 0}}
    del claim["against"]
    result = judged(tmp_path, claim, lengths(50, 55, 60), matrix=RANGE)
    assert result.verdict == "reproduced" and result.rule.startswith("the same in each of 3 cases; 6 launches")


def test_an_open_case_leaves_a_statement_about_every_case_open(tmp_path: Path) -> None:
    def noisy(launch: PlannedLaunch) -> float:
        wide = launch.case.transport is not None and launch.case.value("workload.width") == 1
        return 60 + 5 * launch.plan_index if wide else lengths(50, 55, 60)(launch)

    result = judged(tmp_path, EVERY, noisy, matrix=RANGE)
    assert result.verdict == "inconclusive" and result.rule.startswith("inconclusive in 1 of 3 cases")


def test_a_case_alone_is_judged_as_without_over(tmp_path: Path) -> None:
    one = {**EVERY, "select": {**EVERY["select"], "workload.width": 0.5}}
    assert judged(tmp_path, one, lengths(50, 55, 60), matrix=RANGE).rule.startswith("1.81818 in [1.81818, 1.81818]")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"over": ["minibatch"]}, "not at size smoke: minibatch 64"),
        ({"select": {"transport": "gloo", "minibatch": [8, 64]}}, "not at size smoke: minibatch 64"),
        ({}, ""),
    ],
)
def test_what_a_statement_is_about_and_this_size_lacks_is_named(
    tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    claim = {**SPEEDUP, "metric": "step_s", "select": {"transport": "gloo"}, "rule": {"name": "at_most", "value": 1}}
    del claim["against"]
    result = judged(tmp_path, {**claim, **fields}, lengths(50, 55, 60))
    assert result.reason == said and result.verdict == "reproduced"


def test_no_case_of_a_control_may_show_the_effect(tmp_path: Path) -> None:
    def length(launch: PlannedLaunch) -> float:
        over_tcp = 50 if launch.case.value("workload.width") == 0.25 else 100
        return over_tcp if launch.case.transport == "tcp" else lengths(50, 55, 60)(launch)

    control = {"statement": "s", "select": {"transport": "tcp", "minibatch": 16}, "over": ["workload.width"]}
    with_tcp = RANGE.replace("[gloo, alone]", "[gloo, tcp, alone]")
    result = judged(tmp_path, {**EVERY, "control": control}, length, matrix=with_tcp)
    assert result.verdict == "inconclusive" and result.control is not None and result.control.shows_effect
    assert "but the control shows the effect too: not reproduced in 2 of 3 cases" in result.rule


def test_each_point_has_the_floor_of_its_own_launches_and_the_largest_is_shown(tmp_path: Path) -> None:
    shares = {2: 0.2, 4: 0.01}
    floors = [
        floor("step_s", TRAINING.model_copy(update={"ranks": ranks}), share=share) for ranks, share in shares.items()
    ]
    write_profile(tmp_path / "results", profile_of(*floors))
    claim = {**RANGE_OF, "metric": "step_s", "unit": "s", "select": {"transport": "tcp"}, "over": ["ranks"]}
    claim |= {"unknown": False, "direction": "lower", "rule": {"name": "at_most", "value": 0.105}}
    del claim["against"]
    result = judged(tmp_path, claim, lambda launch: 100, matrix="{arms: [tcp], set: {ranks: 4}}, ")
    assert result.verdict == "inconclusive" and result.rule.startswith("inconclusive in 1 of 2 cases (ranks 2)")
    assert result.noise_floor == 0.2


def test_without_over_the_same_launches_are_taken_together(tmp_path: Path) -> None:
    result = judged(tmp_path, {**EVERY, "over": []}, lengths(50, 55, 60), matrix=RANGE)
    assert "point" not in result.rule


def test_a_range_of_an_ordering_is_refused() -> None:
    with pytest.raises(ValueError, match="leave 'arms' and 'along' out"):
        ClaimForm(
            **{
                **SPEEDUP,
                "against": None,
                "arms": ({"ranks": 1}, {"ranks": 2}),
                "rule": {"name": "ordering"},
                "over": ("workload.width",),
            }
        )


def test_a_condition_that_is_not_known_needs_its_fields() -> None:
    with pytest.raises(ValueError, match="'unknown' is about the fields of 'over'"):
        ClaimForm(**{**RANGE_OF, "over": ()})
