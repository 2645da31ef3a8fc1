"""Which floors a claim's launches need: those of kinds whose times are judged."""

from __future__ import annotations

from pathlib import Path

from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.decidable import machine_noise
from scaleproof.record.machine import write_profile
from scaleproof.spec.launch_kind import LaunchKind
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


def test_what_a_plan_can_decide_needs_no_floor_of_oversubscribed_launches(tmp_path: Path) -> None:
    suite = a_suite(tmp_path, BOTH)
    (claim,) = load_claims(suite)
    cases = [case for case in suite.experiment("speed").size("smoke").cases if case.arm in ("alone", "gloo")]
    profile = profile_of(floor("step_s", ALONE, share=0.02))
    on_one_core, on_two = (machine_noise(profile, cores, claim, cases) for cores in (1, 2))
    assert on_one_core is not None and on_one_core.floor == 0.02 and on_two is None
