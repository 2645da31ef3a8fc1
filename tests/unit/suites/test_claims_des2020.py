"""What des2020 states of bytes beside what launches ask for and what links carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.made_up import Event, MadeUp, Wanted
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.paths import PROJECT
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.case import AnyCase
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import load_suite
from tests.unit.suites.test_des2020_programs import made_case

SUITE = load_suite("des2020", PROJECT / "suites")
METRICS = suite_metrics(SUITE.folder)
STEPS = 7
"""Of a launch at size small, warm-up included."""


def case_of(arm: str) -> AnyCase:
    return next(case for case in SUITE.experiment("training").sizes["small"].cases if case.arm == arm)


def value(name: str, made: MadeUp, case: AnyCase) -> Any:
    return METRICS[name].launch(made.record(case), made.samples(case.ranks))  # type: ignore[misc]


def small_case(way: str, model: str, ranks: int, **options: Any) -> AnyCase:
    return made_case(way, model, ranks, 3, 1, **{"alone": 0, **options})


@pytest.mark.parametrize("ranks", [4, 5])
@pytest.mark.parametrize("way", ["substitution", "server", "async_server", "all_gather"])
@pytest.mark.parametrize("model", ["lr", "deepfm", "dcn"])
def test_a_training_asks_for_the_bytes_that_are_stated(way: str, model: str, ranks: int) -> None:
    case = small_case(way, model, ranks)
    launch = PlannedLaunch(case, 0, 1, 0, programs=str(SUITE.folder / "programs"))
    samples = Predictor(Path("nowhere")).predict(launch).samples.to_pandas()
    record = MadeUp().record(case)
    assert METRICS["payload_off"].launch(record, samples) == pytest.approx(0, abs=1e-9)  # type: ignore[misc]
    other = MadeUp().record(small_case(way, model, ranks, seed=2))
    redrawn = METRICS["payload_off"].launch(other, samples)  # type: ignore[misc]
    assert (redrawn == pytest.approx(0, abs=1e-9)) == (way == "substitution"), (
        "sums do not depend on which ids are drawn"
    )


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
    exact = MadeUp((Event("call", nbytes=STEPS * of_step // 4),))
    assert value("payload_off", exact, case) == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("arm", ["lr_substitution", "lr_server"])
@pytest.mark.parametrize("name", ["payload_off", "wire_off"])
def test_a_made_up_launch_has_the_bytes_that_it_is_made_for(name: str, arm: str) -> None:
    case, made_up = case_of(arm), METRICS[name].made_up
    assert made_up is not None
    assert value(name, made_up(Wanted(case, 0.25)), case) == pytest.approx(0.25, abs=1e-3)


def test_each_short_message_has_headers_and_an_acknowledgement() -> None:
    """LR with 4 workers: 24 messages of 512 bytes in a step and 6 of 4 bytes, and 8 of a barrier at the end."""
    on_links = 24 * (512 + 24 + 132) + 6 * (4 + 24 + 132)
    made = MadeUp(wire_bytes=(STEPS * on_links + 8 * (24 + 132)) // 4)
    assert value("wire_off", made, case_of("lr_substitution")) == pytest.approx(0, abs=1e-9)


def test_every_second_full_packet_is_acknowledged() -> None:
    """DeepFM: 24 messages of 128,000 bytes in a step, of 89 packets and 45 acknowledgements, beside the dense layers'
    24, each a quarter of 7,746 values: 7,744 to 7,748 bytes, of 6 packets and 3 acknowledgements."""
    sums, dense = 24 * (128_000 + 24 + 66 * (89 + 45)), 6 * 4 * 7746 + 24 * (24 + 66 * 9)
    made = MadeUp(wire_bytes=(STEPS * (sums + dense) + 8 * (24 + 132)) // 4)
    assert value("wire_off", made, case_of("deepfm_substitution")) == pytest.approx(0, abs=1e-9)


def test_nothing_is_stated_of_a_training_with_a_test() -> None:
    case = next(iter(SUITE.experiment("quality").sizes["small"].cases))
    assert value("payload_off", MadeUp((Event("call", nbytes=1),)), case) is None
