"""A negative control is judged with the noise floor of its own launches, which calibration measures too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.calibrate.needed_floors import needed_floors
from scaleproof.claims.claims_file import ClaimResult
from scaleproof.record.machine import write_profile
from scaleproof.spec.launch_kind import LaunchKind
from scaleproof.spec.plan import PlannedLaunch
from tests.noise_floors import TRAINING, floor, profile_of
from tests.unit.claims.test_judge import RANKS, SPEEDUP, a_suite, judged

ALONE = LaunchKind(program="train", compute="real", way="no exchange", ranks=1)
CLAIM: dict[str, Any] = {
    **SPEEDUP,
    "select": {"transport": "gloo"},
    "against": {"arm": "alone", "ranks": 2},
    "rule": {"name": "at_least", "value": 1.1},
    "control": {
        "statement": "one rank has nothing to exchange",
        "select": {"transport": "tcp", "ranks": 1},
        "against": {"arm": "alone", "ranks": 1},
    },
}


def with_floors(tmp_path: Path, of_two: float, of_one: float | None, gain_of_one: float) -> ClaimResult:
    """The claim, 1.6 times as fast, with the floors of two ranks and of one, at which the control gains this."""
    gloo = TRAINING.model_copy(update={"transport": "gloo"})
    floors = [floor("throughput", gloo, share=of_two)]
    floors += [floor("throughput", LaunchKind(program="train", compute="real", way="no exchange", ranks=2), share=0.0)]
    floors += [] if of_one is None else [floor("throughput", ALONE, share=of_one)]
    write_profile(tmp_path / "results", profile_of(*floors))

    def length(launch: PlannedLaunch) -> float:
        gain = {("gloo", 2): 1.6, ("tcp", 1): gain_of_one}.get((str(launch.case.transport), launch.case.ranks), 1.0)
        return 100 / gain

    return judged(tmp_path, CLAIM, length, matrix=RANKS)


@pytest.mark.parametrize(
    ("of_two", "of_one", "gain_of_one", "shows_effect", "verdict"),
    [
        (0.22, 0.01, 1.15, True, "inconclusive"),
        (0.22, 0.01, 1.0, False, "reproduced"),
        (0.01, 0.22, 1.0, None, "inconclusive"),
    ],
)
def test_a_control_has_the_floor_of_its_own_launches(
    tmp_path: Path, of_two: float, of_one: float, gain_of_one: float, shows_effect: bool | None, verdict: str
) -> None:
    result = with_floors(tmp_path, of_two, of_one, gain_of_one)
    assert result.control is not None
    assert (result.control.shows_effect, result.verdict, result.noise_floor) == (shows_effect, verdict, of_two)


def test_a_control_without_a_floor_decides_nothing_and_names_its_launches(tmp_path: Path) -> None:
    result = with_floors(tmp_path, 0.01, None, 1.0)
    assert result.verdict == "inconclusive" and "the control decides nothing" in result.rule
    assert str(ALONE) in result.reason


def test_the_floors_of_both_sides_of_a_control_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaleproof.calibrate.needed_floors.usable_cores", lambda: 8)
    control = {**CLAIM["control"], "against": {"transport": "tcp", "ranks": 4}}
    needed = needed_floors(a_suite(tmp_path, {**CLAIM, "control": control}, RANKS), "smoke")
    assert {each.kind.ranks for each in needed} == {1, 2, 4}
