"""Which floors a claim's launches need: those of kinds whose times are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.decidable import machine_noise
from scaleproof.core.record_schema import Code
from scaleproof.record.machine import write_profile
from scaleproof.spec.launch_kind import LaunchKind
from scaleproof.spec.plan import PlannedLaunch
from tests.noise_floors import floor, profile_of
from tests.unit.claims.test_judge import SPEEDUP, a_suite, crowded, judged, one_rank_takes_twice_as_long

BOTH = {key: value for key, value in SPEEDUP.items() if key != "against"} | {
    "metric": "step_s",
    "direction": "lower",
    "select": {"ranks": [1, 2]},
    "rule": {"name": "at_most", "value": 0.6},
}
ALONE = LaunchKind(program="train", compute="real", way="no exchange", ranks=1)


def test_oversubscribed_launches_of_a_side_need_no_floor(tmp_path: Path) -> None:
    write_profile(tmp_path / "results", profile_of(floor("step_s", ALONE, share=0.02)))
    result = judged(tmp_path, BOTH, one_rank_takes_twice_as_long, crowded)
    assert (result.verdict, result.noise_floor, result.n) == ("reproduced", 0.02, 6)


@pytest.mark.parametrize(("code", "warned"), [("d", False), ("", False), ("older", True)])
def test_a_floor_of_other_code_than_the_launches_is_used_with_a_warning(
    tmp_path: Path, code: str, warned: bool
) -> None:
    measured = floor("step_s", ALONE, share=0.02).model_copy(update={"code": code})
    write_profile(tmp_path / "results", profile_of(measured))
    result = judged(tmp_path, BOTH, one_rank_takes_twice_as_long, crowded)
    assert (result.verdict, result.noise_floor) == ("reproduced", 0.02)
    warnings = [warning for warning in result.warnings if "was measured with other code than these" in warning]
    assert len(warnings) == warned and "other code" not in result.reason
    for warning in warnings:
        assert str(ALONE) in warning
        assert warning.endswith("type scaleproof calibrate, then scaleproof calibrate mine --size smoke")


def test_a_claim_has_the_floor_of_as_many_launches_as_it_has(tmp_path: Path) -> None:
    measured = floor("step_s", ALONE, share=0.02).model_copy(update={"launches_per_arm": 3})
    write_profile(tmp_path / "results", profile_of(measured))
    result = judged(tmp_path, BOTH, one_rank_takes_twice_as_long, crowded)
    assert (result.n, result.noise_floor) == (6, pytest.approx(1.02**0.5**0.5 - 1))


def test_one_launch_with_the_code_of_the_floor_is_enough(tmp_path: Path) -> None:
    measured = floor("step_s", ALONE, share=0.02).model_copy(update={"code": "older"})
    write_profile(tmp_path / "results", profile_of(measured))
    older = Code(version="0", commit=None, dirty=None, digest="older", files={"a": "1"})
    newer = older.model_copy(update={"digest": "newer"})

    def change(launch: PlannedLaunch) -> dict[str, Any]:
        code = older if launch.case.ranks == 1 and not launch.plan_index else newer
        return {**crowded(launch), "code": code}

    result = judged(tmp_path, BOTH, one_rank_takes_twice_as_long, change)
    assert result.n == 6 and not any("other code" in warning for warning in result.warnings)


def test_what_a_plan_can_decide_needs_no_floor_of_oversubscribed_launches(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, BOTH)
    (claim,) = load_claims(suite)
    cases = [case for case in suite.experiment("speed").size("smoke").cases if case.arm in ("alone", "gloo")]
    profile = profile_of(floor("step_s", ALONE, share=0.02))
    on_one_core, on_two = (machine_noise(profile, cores, claim, cases) for cores in (1, 2))
    assert on_one_core is not None and on_one_core.floor == 0.02 and on_two is None
