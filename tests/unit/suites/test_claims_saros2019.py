"""The rows and claims of saros2019, and what its metrics make of launches made by hand."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, events
from scaleproof.claims.suite_metrics import load_models
from scaleproof.programs.own import load_entry
from scaleproof.spec.case import OwnCase
from scaleproof.spec.suite import load_suite
from tests.short_form import case_from

SUITE = Path(__file__).resolve().parents[3] / "suites" / "saros2019"
MODELS = load_models(SUITE / "models" / "__init__.py")
METRICS = {metric.name: metric for metric in MODELS.METRICS}
rankings, exchanges, traffic = MODELS.rankings, MODELS.exchanges, MODELS.traffic
LAW = {"users": 60, "items": 120, "mean": 30, "exponent": 0.8, "dim": 4}


def case(ranks: int = 1, **options: Any) -> OwnCase:
    made = case_from(
        {
            "program": "own",
            "entry": "divided_users" if ranks > 1 else "recommender",
            "suite": "saros2019",
            "experiment": "e",
            "arm": "a",
            "ranks": ranks,
            "iterations": 2,
            "warmup": 0,
            **({"transport": "tcp", "collective": "ring"} if ranks > 1 else {}),
            "options": options,
        }
    )
    assert isinstance(made, OwnCase)
    return made


def launch(of: OwnCase, **values: float) -> Launch:
    made = events(*(Event(name, ranks=(0,), value=value) for name, value in values.items()))
    return Launch(made.record(of), made.samples(of.ranks))


def value(name: str, of: Launch) -> float | None:
    function = METRICS[name].launch
    assert function is not None
    return function(of.record, of.samples)


def test_rows_are_settings_sizes_and_what_was_not_recovered_and_none_decides() -> None:
    claims = [claim for claim in load_claims(load_suite(SUITE)) if claim.row is not None]
    rows = {claim.form.id: claim.row for claim in claims if claim.row is not None}
    assert len(rows) == 28 and not any(row.gate for row in rows.values())
    kinds = [row.provenance for row in rows.values()]
    assert (kinds.count("author_code"), kinds.count("memory_medium"), kinds.count("paper")) == (7, 18, 2)
    assert rows["saros2019.missing"].provenance == "not_recovered" and rows["saros2019.missing"].value is None
    assert rows["saros2019.code.train_fraction"].value == 0.8
    assert {claim.form.kind for claim in claims if claim.form.id != "saros2019.missing"} == {"context"}


def test_what_our_own_code_counts_is_a_check() -> None:
    counted = {name for name, metric in METRICS.items() if metric.own_count}
    assert {"updates_saved", "bots_undone", "sent_per_pass", "exchange_difference"} <= counted
    own = [claim.form for claim in load_claims(load_suite(SUITE)) if claim.form.origin == "own"]
    assert all(form.kind == "check" for form in own if form.metric in counted)


def test_a_launch_has_what_it_noted_and_one_that_diverged_has_words() -> None:
    well = launch(case(), map_at_5=0.4, authors_map_at_5=0.6, promoted_share=0.25, promoted_place=17.0)
    assert value("map_at_5", well) == 0.4 and value("promoted_share", well) == 0.25
    assert value("promoted_place", well) == 17 and value("definition_gain", well) == pytest.approx(1.5)
    badly = launch(case(), diverged=3.0)
    words = METRICS["map_at_5"].instead
    assert value("map_at_5", badly) is None and value("definition_gain", badly) is None
    assert words is not None and words(badly.record, badly.samples) == "diverged at pass 3"
    assert words(well.record, well.samples) is None


def test_updates_saved_are_all_pairs_over_the_steps_of_a_pass() -> None:
    assert value("updates_saved", launch(case(), all_pairs=3000.0, updates_per_pass=20.0)) == 150
    assert value("updates_saved", launch(case(), all_pairs=3000.0, updates_per_pass=0.0)) is None


def divided(exchange: str, round_users: int, **values: float) -> Launch:
    return launch(case(2, exchange=exchange, round_users=round_users, **LAW), **values)


def test_an_all_reduce_sends_all_factors_in_each_round() -> None:
    setting = traffic.Setting(60, 120, 30.0, 0.8, 2, 8, 4)
    assert setting.rounds == [8, 8, 8, 6]
    assert traffic.all_reduce_bytes(setting) == 4 * 120 * 4 * 4
    sent = divided("all_reduce", 8, sent=2 * 1.25 * traffic.all_reduce_bytes(setting))
    assert value("sent_per_pass", sent) == 1.25 * traffic.all_reduce_bytes(setting)
    assert value("sent_error", sent) == pytest.approx(0.2)


def test_servers_send_ids_and_two_rows_for_each_row_that_another_rank_serves() -> None:
    everything = traffic.Setting(600, 120, 40.0, 0.0, 3, 10**6, 4)
    assert traffic.server_bytes(everything) == pytest.approx(2 * 8 + 120 * 2 / 3 * (8 + 2 * 16), rel=0.01)
    often = traffic.Setting(60, 120, 30.0, 0.8, 2, 1, 4)
    assert traffic.server_bytes(often) > traffic.server_bytes(traffic.Setting(60, 120, 30.0, 0.8, 2, 8, 4))
    alone = traffic.Setting(2000, 3000, 30.0, 0.0, 2, 1, 4)  # a user alone meets its own items, once each
    met = (traffic.server_bytes(alone) / 1000 - 8) / 40 * 2
    assert met == pytest.approx(0.8 * 30, rel=0.05)


def test_the_law_of_the_model_is_that_of_the_data() -> None:
    load_entry(SUITE / "programs", "recommender")
    planted = importlib.import_module("suite_programs.planted")
    recommender = importlib.import_module("suite_programs.recommender")
    assert (planted.SPREAD, planted.LEAST, recommender.TRAIN) == (traffic.SPREAD, traffic.LEAST, traffic.TRAIN)


def ended(exchange: str, round_users: int, *sketches: tuple[float, ...], norm: float = 2.0) -> Launch:
    """A launch whose ranks end with factors of these projections."""
    of = case(len(sketches), exchange=exchange, round_users=round_users, **LAW)
    noted = [Event("items_norm", value=norm)]
    for rank, values in enumerate(sketches):
        noted += [Event("items_sketch", ranks=(rank,), step=step, value=each) for step, each in enumerate(values)]
    made = events(*noted)
    return Launch(made.record(of), made.samples(of.ranks))


def test_ways_to_exchange_differ_by_the_distance_of_their_factors_at_the_same_rounds() -> None:
    one, moved, opposite = (3.0, -1.0), (3.0 + 2e-3, -1.0), (-3.0, 1.0)
    same = ended("all_reduce", 8, one, one)
    assert exchanges.exchange_difference([same, ended("server", 8, one, one)]) == 0
    assert exchanges.exchange_difference([same, ended("server", 8, one, moved)]) == pytest.approx(1e-3 / 2**0.5)
    far = exchanges.exchange_difference([same, ended("server", 8, opposite, opposite), ended("server", 450, one, one)])
    assert far == pytest.approx(5**0.5), "of the same norm, and not the same factors"
    assert exchanges.exchange_difference([same, ended("server", 450, moved, moved)]) is None
    assert exchanges.exchange_difference([same, divided("server", 8, sent=1.0)]) is None


def test_what_servers_save_is_the_ratio_of_both() -> None:
    x = exchanges.OfExchange(users=60, items=120, mean=30.0, exponent=0.8, ranks=2, round_users=8, dim=4)
    setting = traffic.Setting(60, 120, 30.0, 0.8, 2, 8, 4)
    expected = traffic.all_reduce_bytes(setting) / traffic.server_bytes(setting)
    assert exchanges.server_saves(x, Published()) == pytest.approx(expected)


def losses(*found: tuple[int, float]) -> Launch:
    """Updates and the loss over all pairs after them."""
    made = events(*(Event("pair_loss", ranks=(0,), value=loss, step=updates) for updates, loss in found))
    return Launch(made.record(case()), made.samples(1))


def test_losses_are_compared_at_the_most_updates_that_both_have_made() -> None:
    pair = METRICS["loss_at_updates"].pair
    assert pair is not None
    few, many = losses((0, 0.7), (1, 0.68), (32, 0.3)), losses((0, 0.7), (16, 0.68), (48, 0.64), (9000, 0.2))
    assert pair(few, many, None) == pytest.approx(0.3 / 0.66), "between 16 and 48 the base is interpolated"
    assert pair(many, few, None) == pytest.approx(0.66 / 0.3)
    assert pair(launch(case(), map_at_5=0.4), few, None) is None
