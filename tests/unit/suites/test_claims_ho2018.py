"""The suite ho2018: rows as published, and its metrics on launches made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.made_up import Event, MadeUp
from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.spec.case import AnyCase
from scaleproof.spec.suite import load_suite
from tests.unit.claims.claims_samples import arithmetic

SUITE = load_suite("ho2018", Path(__file__).resolve().parents[3] / "suites")
METRICS: dict[str, Metric] = suite_metrics(SUITE.folder)


def case_of(**fields: Any) -> AnyCase:
    return next(case for case in SUITE.experiment("training").size("smoke").cases if chosen(case, fields))


def launch(made: MadeUp, **fields: Any) -> Launch:
    case = case_of(**fields)
    return Launch(made.record(case), made.samples(case.ranks))


def training(seconds: float, waiting: float, nbytes: int, loss: float = 1.0) -> MadeUp:
    """A step of each rank, of which it waits for a peer's parameters for a while; loss and accuracy at its end."""
    ends = (Event("test_loss", ranks=(0,), value=loss), Event("test_accuracy", ranks=(0,), value=1 - loss / 10))
    return MadeUp((Event("step", 0.0, seconds), Event("call", 0.0, waiting, nbytes=nbytes), *ends))


def pair(name: str, ours: Launch, base: Launch) -> float | None:
    metric = METRICS[name].pair
    assert metric is not None
    return metric(ours, base, None)


def test_rows_are_the_abstracts_and_the_saving_of_time_is_arithmetic() -> None:
    rows, claims = load_published(SUITE.folder), {claim.form.id: claim for claim in load_claims(SUITE)}
    assert {row.id: row.value for row in rows.values() if row.gate} == {
        "ho2018.traffic": 92,
        "ho2018.time": 52,
        "ho2018.acc": 1,
    }
    kinds = {name: claims[name].form.kind for name in rows}
    assert kinds == {
        "ho2018.traffic": "claim",
        "ho2018.time": "consistency",
        "ho2018.acc": "claim",
        "ho2018.implied.share": "context",
    }
    x = claims["ho2018.implied.share"].form.x
    assert arithmetic(METRICS["implied_share"], rows, **x) == pytest.approx(56.52, abs=0.01)


def test_savings_are_against_the_base_of_the_same_seed() -> None:
    base = launch(training(1.0, 0.6, 1000), arm="gossip", ranks=8)
    ours = launch(training(0.5, 0.1, 200, loss=1.2), arm="adaptive", ranks=8)
    assert pair("saved_traffic", ours, base) == pytest.approx(80)
    assert pair("time_saved", ours, base) == pytest.approx(50)
    assert pair("saving_missed", ours, base) == pytest.approx(50 - 0.6 * 80)
    assert pair("accuracy_lost", ours, base) == pytest.approx(2)
    assert pair("accuracy_kept", ours, base) == 0 and pair("accuracy_kept", base, base) == 1


def test_where_nodes_have_links_the_kernels_bytes_count() -> None:
    base, ours = (
        launch(MadeUp(training(1.0, 0.5, 1000).events, wire_bytes=nbytes), arm="gossip", fabric="netns")
        for nbytes in (1000, 300)
    )
    assert pair("saved_traffic", ours, base) == pytest.approx(70)


def block(triggered_bytes: int, seldom: float = 2.0) -> list[Launch]:
    """`seldom`: test loss of the longer period."""
    return [
        launch(training(1.0, 0.5, 800, loss=1.0), arm="period_2"),
        launch(training(1.0, 0.5, 200, loss=seldom), arm="period_8"),
        launch(training(1.0, 0.5, triggered_bytes, loss=1.2), arm="adaptive", ranks=8),
    ]


def test_the_fixed_period_that_sends_as_much_is_interpolated_over_the_logarithm_of_bytes() -> None:
    metric = METRICS["loss_over_fixed"].block
    assert metric is not None
    assert metric(block(400), None) == pytest.approx(1.2 / 1.5)
    assert metric(block(800), None) == pytest.approx(1.2)
    assert metric(block(400, seldom=0.5), None) == pytest.approx(1.2 / 0.5), "fewer exchanges are better"
    assert metric(block(100), None) is None, "no period sends as little"
    assert metric(block(400)[:2], None) is None, "nothing is triggered"
