"""Made-up launches scatter as those of a machine would: predictions beside measurements not at all, and no launch to a
value that its case cannot have."""

from __future__ import annotations

import pytest

from scaleproof.claims.decidable import resolution_of
from scaleproof.claims.power import Launches, Noise, against_prediction
from scaleproof.spec.suite import load_suite
from scaleproof.stats.resolution import of_ratio, of_value
from tests.unit.claims.made_up_launches import SUITES, claim_of

NOISE = Noise(0.02, 0.03)


def test_a_prediction_beside_measurements_has_no_noise_of_the_machine() -> None:
    """Its interval would be as wide again, and 8 % could not be shown."""
    suite = load_suite("validation", SUITES)
    launches, claim = Launches(suite, "smoke"), claim_of(suite, "validation.costs.beta")
    assert against_prediction(claim, "simulated") and not against_prediction(claim, "emulated")
    assert launches.power(claim, "simulated", NOISE).both_ways
    assert resolution_of(claim, "simulated", NOISE)(6) == pytest.approx(of_value(0.02, 6, 0.03))


def test_two_measured_sides_are_resolved_as_pairs() -> None:
    suite = load_suite("xue2019", SUITES)
    claim = claim_of(suite, "xue2019.own.tiny")
    assert resolution_of(claim, "measured", NOISE)(6) == pytest.approx(of_ratio(0.02, 6, 0.03))


def test_noise_moves_no_launch_to_a_value_that_its_case_cannot_have() -> None:
    """A share of steps is at most all of them, in every case of the claim."""
    suite = load_suite("psp2017", SUITES)
    claim = claim_of(suite, "psp2017.own.lags.far")
    assert Launches(suite, "smoke").power(claim, "simulated", Noise(0.14)).both_ways
