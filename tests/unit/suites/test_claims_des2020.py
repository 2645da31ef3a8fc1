"""What des2020 states of bytes beside what launches ask for and what links carry."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.claims.made_up import Event, MadeUp, Wanted
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.paths import PROJECT
from scaleproof.spec.case import AnyCase
from scaleproof.spec.suite import load_suite

SUITE = load_suite("des2020", PROJECT / "suites")
METRICS = suite_metrics(SUITE.folder)


def case_of(arm: str) -> AnyCase:
    return next(case for case in SUITE.experiment("training").sizes["small"].cases if case.arm == arm)


def value(name: str, made: MadeUp, case: AnyCase) -> Any:
    return METRICS[name].launch(made.record(case), made.samples(case.ranks))  # type: ignore[misc]


def test_full_packets_with_headers_and_acknowledgements_are_what_is_stated() -> None:
    """1,448 bytes in a packet, 66 of headers, and half an acknowledgement of 66 that goes the other way."""
    made = MadeUp((Event("call", nbytes=1_448_000),), wire_bytes=1_448_000 + 1000 * 66 + 500 * 66)
    assert value("wire_off", made, case_of("deepfm_server")) == pytest.approx(0)
    without = MadeUp(made.events, wire_bytes=1_448_000)
    assert value("wire_off", without, case_of("deepfm_server")) == pytest.approx(-0.064, abs=1e-3)


@pytest.mark.parametrize(
    ("arm", "of_step"),
    [
        # 2 x 3 x 4 bytes of (p x 128 samples x 4 workers + w) by hand
        ("lr_substitution", 24 * (1 * 512 + 1)),
        ("fm_substitution", 24 * (10 * 512 + 1)),
        ("deepfm_substitution", 24 * (250 * 512 + 1 + 240 * 32 + 32 + 32 + 1)),
    ],
)
def test_a_step_by_substitution_has_the_stated_payload(arm: str, of_step: int) -> None:
    case = case_of(arm)
    exact = MadeUp((Event("reduce_scatter"), Event("call", nbytes=of_step // 4)))
    assert value("payload_off", exact, case) == pytest.approx(0, abs=1e-4)
    assert METRICS["payload_off"].made_up is not None
    more = METRICS["payload_off"].made_up(Wanted(case, 0.25))
    assert value("payload_off", more, case) == pytest.approx(0.25, abs=1e-3)


def test_what_servers_send_has_no_stated_payload() -> None:
    assert value("payload_off", MadeUp((Event("call", nbytes=1),)), case_of("lr_server")) is None
