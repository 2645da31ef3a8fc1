"""The suite mimatrix2018: what is a claim and what a check, and its metrics on launches made by hand."""

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
from scaleproof.spec.suite import load_suite

SUITE = load_suite("mimatrix2018", Path(__file__).resolve().parents[3] / "suites")
METRICS: dict[str, Metric] = suite_metrics(SUITE.folder)
PARAMETERS = 42_634
MODEL = 4 * PARAMETERS
STEPS = 2
"""Of experiment counts."""


def launch(experiment: str, *events: Event, wire_bytes: int | None = None, **fields: Any) -> Launch:
    case = next(case for case in SUITE.experiment(experiment).size("smoke").cases if chosen(case, fields))
    made = MadeUp((Event("step"), *events), wire_bytes=wire_bytes)
    return Launch(made.record(case), made.samples(case.ranks))


def value(name: str, found: Launch) -> float | None:
    metric = METRICS[name].launch
    assert metric is not None
    return metric(found.record, found.samples)


def control(workers: int, count: int, server: int = 0, **fields: Any) -> Launch:
    """So many control messages of each worker, and of the server."""
    ranks = tuple(range(1, workers + 1))
    made = [Event("control", ranks=ranks)] * count + [Event("control", ranks=(0,))] * server
    return launch("counts", *made, ranks=workers + 1, fabric="simulated", **fields)


def test_counts_of_our_own_code_are_checks_and_no_claims() -> None:
    forms = {claim.form.id: (claim.form, claim.metric) for claim in load_claims(SUITE)}
    assert {name for name, (form, _) in forms.items() if form.kind == "check"} == {
        name for name, (_, metric) in forms.items() if metric is not None and metric.own_count
    }
    assert forms["mimatrix2018.handshake"][0].kind == "check"
    assert forms["mimatrix2018.ps_bottleneck"][0].kind == "claim"
    assert all(form.control for form, _ in forms.values() if form.kind == "check")
    assert set(load_published(SUITE.folder)) <= set(forms)


def test_a_start_and_an_end_make_two_messages_for_each_worker_and_epoch() -> None:
    assert value("control_per_epoch", control(8, 2, 16, arm="job_server")) == 2
    assert value("handshakes_per_tensor", control(8, 2, 16, arm="job_server")) == 0
    assert value("control_per_epoch", control(8, 1, 8, arm="longer_epochs")) == 2
    assert value("handshakes_per_tensor", control(8, 2 + STEPS * 8 * 7, 16, arm="handshakes")) == 7


def test_the_exponent_is_that_with_which_messages_grow() -> None:
    metric = METRICS["control_growth"].block
    assert metric is not None
    flat = [control(workers, 2, 2 * workers, arm="job_server") for workers in (2, 8, 32)]
    growing = [control(workers, 2 * workers, arm="job_server") for workers in (2, 8, 32)]
    assert metric(flat, None) == pytest.approx(0, abs=1e-12)
    assert metric(growing, None) == pytest.approx(1)
    assert metric(flat[:1], None) is None, "one number of workers"


def test_what_a_server_moves_counts_both_ways() -> None:
    moved = (Event("send", ranks=(0,), nbytes=8 * STEPS * MODEL), Event("wait", ranks=(0,), nbytes=8 * STEPS * MODEL))
    between = Event("put", ranks=(1, 2), nbytes=MODEL)
    found = launch("counts", *moved, between, ranks=9, arm="through_server", fabric="simulated")
    assert value("models_through_server", found) == pytest.approx(1)
    found = launch("counts", between, ranks=9, arm="job_server", fabric="simulated")
    assert value("models_through_server", found) == 0


def test_the_rank_that_adds_most_counts() -> None:
    part = PARAMETERS * 7 / 8
    shared = [Event("reduced", ranks=tuple(range(1, 9)), value=part)] * STEPS
    assert value("reduction_ratio", launch("counts", *shared, ranks=9, arm="job_server", fabric="simulated")) == 1
    alone = Event("reduced", ranks=(0,), value=8.0 * STEPS * PARAMETERS)
    found = launch("counts", alone, ranks=9, arm="through_server", fabric="simulated")
    assert value("reduction_ratio", found) == pytest.approx(64 / 7)


@pytest.mark.parametrize(("share", "only"), [(0.002, 1), (0.02, 0), (1.0, 0)])
def test_the_job_servers_node_has_room_for_control_alone(share: float, only: int) -> None:
    carried = round(share * 8 * STEPS * MODEL)
    assert value("control_path_only", launch("wire", wire_bytes=carried, ranks=9, arm="job_server")) == only


def test_the_busiest_nodes_bytes_are_counted_in_models_a_step() -> None:
    found = launch("wire", wire_bytes=round(1.75 * STEPS * MODEL), ranks=9, arm="job_server")
    assert value("models_at_busiest_node", found) == pytest.approx(1.75)
