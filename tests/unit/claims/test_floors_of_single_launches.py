"""Metrics of blocks and pairs, and identities, compare single launches: with the noise floor of one launch, which is
larger than that of the medians of two arms."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claim_form import Rule
from scaleproof.claims.claims_file import ClaimResult
from scaleproof.claims.decidable import resolution_of
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.claims.noise_floor import KnownFloor
from scaleproof.claims.power import Launches, Noise
from scaleproof.record.machine import Floor, write_profile
from scaleproof.spec.suite import load_suite
from scaleproof.stats.resolution import of_value
from tests.noise_floors import TRAINING, floor, profile_of
from tests.unit.claims.made_up_launches import SUITES, claim_of
from tests.unit.claims.test_judge import ORDER, gloo_is_faster, judged, only_gloo, without_alone

SHARE, SPREAD = 0.04, 0.03
SINGLE = math.exp(1.96 * math.sqrt(2) * SPREAD) - 1
"""8.7 %: identical launches with a spread of 3 % differ by so much at most in 95 % of comparisons."""
GAIN = 0.06
"""Between the floor of arms and that of single launches."""
MODELS = """
from scaleproof.claims.beyond_floor import FloorRange, sign, wins
from scaleproof.claims.metrics import Metric

def took(launch):
    steps = launch.samples[launch.samples["event"] == "step"]
    return float((steps["end_ns"] - steps["start_ns"]).median())

def won(block, floor):
    times = {launch.record.case.transport: took(launch) for launch in block}
    return wins([[sign(times["tcp"], times["gloo"], floor)]])

def gain(launch, base, floor):
    return float(sign(took(base), took(launch), floor))

CLOCKED = {"clocked": True, "noise_of": ("step_s",), "noise": "inside", "range": (-1, 1)}
METRICS = [
    Metric("won", "fraction", "higher", block=won, **CLOCKED),
    Metric("gain", "1", "higher", pair=gain, **CLOCKED),
]
"""
BLOCK: dict[str, Any] = {
    **{name: value for name, value in ORDER.items() if name != "against"},
    "metric": "won",
    "unit": "fraction",
    "direction": "higher",
    "select": {"transport": ["gloo", "tcp"]},
    "rule": {"name": "at_least", "value": 0.5},
}
PAIR: dict[str, Any] = {
    **ORDER,
    "metric": "gain",
    "unit": "1",
    "direction": "higher",
    "rule": {"name": "at_least", "value": 0.5},
}


def result(tmp_path: Path, claim: dict[str, Any], gain: float, spread: float) -> ClaimResult:
    """The claim where a step over gloo is faster by this share, on a machine whose launches spread so much."""
    kinds = [TRAINING.model_copy(update={"transport": transport}) for transport in ("gloo", "tcp")]
    floors = [floor("step_s", kind, share=SHARE, spread=spread) for kind in kinds]
    write_profile(tmp_path / "results", profile_of(*floors))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "models.py").write_text(MODELS)
    return judged(tmp_path, claim, gloo_is_faster(gain), without_alone)


@pytest.mark.parametrize(
    ("gain", "spread", "used", "of_block", "of_pair"),
    [
        (GAIN, 0.0, SHARE, "reproduced", "reproduced"),
        (GAIN, SPREAD, SINGLE, "inconclusive", "not reproduced"),
        (0.12, SPREAD, SINGLE, "reproduced", "reproduced"),
    ],
)
def test_blocks_and_pairs_count_only_what_is_beyond_the_floor_of_one_launch(
    tmp_path: Path, gain: float, spread: float, used: float, of_block: str, of_pair: str
) -> None:
    for name, claim, verdict in (("block", BLOCK, of_block), ("pair", PAIR, of_pair)):
        judged_claim = result(tmp_path / name, claim, gain, spread)
        assert (judged_claim.verdict, judged_claim.noise_floor) == (verdict, pytest.approx(used)), name


@pytest.mark.parametrize(
    ("tolerance", "spread", "used", "verdict"),
    [
        (0.006, 0.0, SHARE, "reproduced"),
        (0.006, SPREAD, SINGLE, "inconclusive"),
        (0.012, SPREAD, SINGLE, "reproduced"),
    ],
)
def test_an_identity_of_times_holds_beyond_the_floor_of_one_launch(
    tmp_path: Path, tolerance: float, spread: float, used: float, verdict: str
) -> None:
    claim = {**ORDER, "rule": {"name": "equal_to_tolerance", "value": 0.1, "tolerance": tolerance}}
    del claim["against"]
    write_profile(
        tmp_path / "results",
        profile_of(floor("step_s", TRAINING.model_copy(update={"transport": "gloo"}), share=SHARE, spread=spread)),
    )
    identity = judged(tmp_path, claim, lambda launch: 100, only_gloo)
    assert (identity.verdict, identity.noise_floor) == (verdict, pytest.approx(used))


def test_medians_of_arms_keep_their_own_floor(tmp_path: Path) -> None:
    ordered = result(tmp_path, ORDER, GAIN, SPREAD)
    assert (ordered.verdict, ordered.noise_floor) == ("reproduced", SHARE)


@pytest.mark.parametrize(("share", "spread", "single"), [(SHARE, SPREAD, SINGLE), (0.1, SPREAD, 0.1), (0.0, 0.0, 0.0)])
def test_the_floor_of_one_launch_is_never_below_that_of_arms(share: float, spread: float, single: float) -> None:
    measured: Floor = floor("step_s", share=share, spread=spread)
    assert measured.of_one_launch == pytest.approx(single)
    known = Noise(spread, share).known(6)
    assert (known.share, known.of_one_launch) == (share, pytest.approx(single))


def test_what_a_plan_can_decide_follows_from_the_floor_that_will_be_used() -> None:
    suite = load_suite("micro", SUITES)
    pairs, launches = claim_of(suite, "micro.prediction.tcp"), Launches(suite, "smoke")
    power = launches.power(pairs, "measured", Noise(SPREAD, SHARE))
    assert f"noise floor {100 * SINGLE:.3g} %" in power.fails[1]
    assert resolution_of(pairs, "measured", Noise(SPREAD, SHARE))(6) == pytest.approx(of_value(SPREAD, 6, SINGLE))


@pytest.mark.parametrize(
    ("metric", "rule", "share"),
    [
        (METRICS["step_s"], Rule(name="at_most", value=1), 0.1),
        (METRICS["step_s"], Rule(name="equal_to_tolerance", value=1, tolerance=0.1), 0.2),
        (METRICS["level_error"], Rule(name="equal_to_tolerance", value=0, tolerance=0.1), 0.1),
        (METRICS["same_convergence"], Rule(name="at_least", value=1), 0.2),
        (Metric("won", "1", "higher", block=lambda block, floor: None), None, 0.2),
    ],
)
def test_a_known_floor_is_used_as_the_claim_compares(metric: Metric, rule: Rule | None, share: float) -> None:
    assert KnownFloor(0.1, 0.2).used_for(metric, rule).share == share
    assert KnownFloor(0.1).used_for(metric, rule).share == 0.1, "of one launch nothing is known"
