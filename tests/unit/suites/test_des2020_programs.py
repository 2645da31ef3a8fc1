"""The programs of des2020: divided tables give the sums and gradients of the whole, and every way trains alike."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from scaleproof.programs.own import load_entry
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.case import AnyCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import case_from

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "des2020" / "programs"
MODELS = ["lr", "fm", "wide_deep", "deepfm", "dcn"]


def modules() -> tuple[ModuleType, ModuleType, ModuleType]:
    load_entry(PROGRAMS, "click_training")
    data, shards, recommender = (
        importlib.import_module(f"suite_programs.{name}") for name in ("click_data", "shards", "recommender")
    )
    return data, shards, recommender


def made_case(way: str, model: str, ranks: int, iterations: int = 5, warmup: int = 0, **options: Any) -> AnyCase:
    """A small case in virtual time."""
    given = {"model": model, "way": way, "batch": 16, "ids": 600, "slots": 12, "fields": 4, "exponent": 1.05, "k": 3}
    return case_from(
        {
            "program": "own",
            "entry": "click_training",
            "suite": "des2020",
            "experiment": "e",
            "arm": "a",
            "transport": "tcp",
            "collective": "ring",
            "ranks": ranks,
            "iterations": iterations,
            "warmup": warmup,
            "fabric": {"name": "simulated", "link_mbit": 50, "costs": "stated"},
            "options": {**given, "rate": 0.5, "alone": 1, "test_samples": 0, "compute_ms": 0, **options},
        }
    )


def trained(way: str, model: str, ranks: int, **options: Any) -> dict[str, list[float]]:
    """Values by event, in virtual time; `step_s`: lengths of the steps, in s."""
    case = made_case(way, model, ranks, **options)
    launch = PlannedLaunch(case, 0, 1, 0, programs=str(PROGRAMS))
    samples = Predictor(Path("nowhere")).predict(launch).samples.to_pandas()
    steps = samples[samples.event == "step"]
    values = {event: rows.value.tolist() for event, rows in samples.groupby("event", observed=True)}
    return values | {"step_s": ((steps.end_ns - steps.start_ns) / 1e9).tolist()}


@pytest.mark.parametrize("model", MODELS)
def test_sums_over_workers_are_those_of_all_ids(model: str) -> None:
    data, shards, recommender = modules()
    law = data.Law(900, 15, 5, 1.05)
    form, clicks = recommender.form_of(model, 4, 5), data.draw(law, 1, 0, 32)
    whole = shards.Shard(form, law.ids, 0, 1, 1)
    lookup = shards.Lookup(clicks, law.field_of_slots(), 5)
    wanted = lookup.partial(form, whole.rows[lookup.ids])
    assert wanted.shape == (32, form.floats)
    total = np.zeros_like(wanted)
    for rank in range(3):
        part = shards.Shard(form, law.ids, rank, 3, 1)
        own = shards.Lookup(clicks, law.field_of_slots(), 5, rank, 3)
        total += own.partial(form, part.rows[part.place(own.ids)])
    np.testing.assert_allclose(total, wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("ids", "message"),
    [([0, 300], "id 300: the table has ids 0 to 299; set ids: 301 or more"), ([-3, 3], "id -3: the table has ids")],
)
def test_an_id_beyond_the_table_is_one_line(ids: list[int], message: str) -> None:
    _, shards, recommender = modules()
    part = shards.Shard(recommender.form_of("fm", 4, 5), 300, 0, 3, 1)
    with pytest.raises(SpecError, match=message):
        part.place(np.array(ids))


@pytest.mark.parametrize("ranks", [1, 4, 5])
def test_gathered_rows_are_those_of_the_samples_ids(ranks: int) -> None:
    data, shards, _ = modules()
    law = data.Law(900, 15, 5, 1.05)
    clicks = data.draw(law, 1, 0, 32)
    lookup = shards.Lookup(clicks.part(slice(8, 16)), law.field_of_slots(), 5)
    found = shards.Gathering(clicks.ids, lookup, ranks)
    assert found.longest == max(len(ids) for ids in found.ids)
    assert [set(ids) for ids in found.ids] == [set(clicks.ids[clicks.ids % ranks == rank]) for rank in range(ranks)]
    assert [found.ids[owner][place] for owner, place in zip(found.owner, found.place, strict=True)] == list(lookup.ids)


@pytest.mark.parametrize("model", MODELS)
def test_gradients_of_rows_are_those_of_autograd(model: str) -> None:
    data, shards, recommender = modules()
    law = data.Law(300, 10, 5, 1.05)
    form, clicks = recommender.form_of(model, 4, 5), data.draw(law, 2, 0, 8)
    lookup = shards.Lookup(clicks, law.field_of_slots(), 5)
    rows = np.random.default_rng(0).standard_normal((len(lookup.ids), form.per_id)).astype(np.float32)
    weights = np.random.default_rng(1).standard_normal((8, form.floats)).astype(np.float32)
    found = lookup.gradient(form, rows, weights)

    table = torch.from_numpy(rows.copy()).requires_grad_(True)
    by_sample, by_field = (torch.from_numpy(each.toarray()) for each in (lookup.by_sample, lookup.by_field))
    squares, v, parts = torch.from_numpy(lookup.squares.toarray()), table[:, form.linear :], []
    if form.linear:
        parts.append(by_sample @ table[:, :1])
    if form.pairs:
        parts += [by_sample @ v, squares @ (v**2).sum(dim=1, keepdim=True)]
    if form.pooled:
        parts.append((by_field @ v).reshape(8, -1))
    (torch.cat(parts, dim=1) * torch.from_numpy(weights)).sum().backward()
    assert table.grad is not None
    np.testing.assert_allclose(found, table.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("model", MODELS)
def test_substitution_has_the_losses_of_one_process(model: str, ranks: int) -> None:
    assert trained("substitution", model, ranks)["loss_difference"][0] < 1e-5


@pytest.mark.parametrize("way", ["server", "all_gather"])
def test_other_synchronous_ways_have_them_too(way: str) -> None:
    for model in MODELS:
        assert trained(way, model, 3)["loss_difference"][0] < 1e-5


def test_asynchronous_servers_compute_something_else() -> None:
    assert trained("async_server", "fm", 3)["loss_difference"][0] > 1e-4


def test_a_hidden_model_can_be_learned() -> None:
    found = trained("substitution", "lr", 2, batch=256, rate=4.0, test_samples=4096)
    assert found["auc"][0] > 0.55


def test_a_test_after_the_training_sends_bytes_of_its_own() -> None:
    def exchanges(samples: int) -> int:
        return len(trained("substitution", "fm", 2, test_samples=samples)["all_reduce"])

    assert (exchanges(0), exchanges(64)) == (2 * 5, 2 * 6), "one on each rank after 5 steps"
    assert "auc" not in trained("substitution", "fm", 2)


def test_frequent_ids_are_drawn_more_often() -> None:
    data, _, _ = modules()
    law = data.Law(10_000, 100, 10, 1.05)
    clicks = data.draw(law, 1, 0, 500)
    first = (clicks.ids % 1000 == 0).mean()
    assert 0.05 < first < 0.3
    assert (clicks.ids // 1000 == law.field_of_slots()).all(), "each slot has ids of its field"
    assert 0.2 < clicks.labels.mean() < 0.8


def test_the_area_under_the_curve_counts_pairs() -> None:
    _, _, recommender = modules()
    assert recommender.auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.0, 1.0, 1.0])) == 0.75
    assert recommender.auc(np.array([1.0, 1.0]), np.array([0.0, 1.0])) == 0.5


@pytest.mark.parametrize(
    ("way", "model", "message"),
    [
        ("server", "lrr", "unknown model 'lrr'"),
        ("servers", "lr", "options.way: unknown value 'servers'; did you mean 'server'"),
    ],
)
def test_what_is_unknown_is_said(way: str, model: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        trained(way, model, 2)


@pytest.mark.parametrize("way", ["substitution", "server", "all_gather", "async_server"])
def test_a_step_takes_the_stated_time_of_computing_beside_its_messages(way: str) -> None:
    def step_s(compute_ms: float) -> float:
        found = trained(way, "fm", 2, compute_ms=compute_ms)
        return float(np.median(found["step_s"]))

    assert step_s(200) - step_s(0) == pytest.approx(0.2, rel=0.05)


def test_workers_of_asynchronous_servers_push_late_and_servers_note_how_old_gradients_are() -> None:
    on_time, late = (trained("async_server", "fm", 4, delay_ms=delay, slept=1) for delay in (0, 100))
    assert sum(late["step_s"]) - sum(on_time["step_s"]) == pytest.approx(0.1 * len(late["step_s"]), rel=0.5)
    assert len(late["staleness"]) == 4 * 4 * 5, "each of four servers takes five gradients of each of four workers"
    assert max(late["staleness"]) > max(on_time["staleness"]) and np.mean(late["staleness"]) <= 3
    with pytest.raises(SpecError, match="options.delay_ms: is of way 'async_server', not 'server'; leave it out"):
        trained("server", "fm", 2, delay_ms=5)
