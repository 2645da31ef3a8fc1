"""The suite gpu_collectives: every row has its entry, the README says what was found, and a model that is wrong is
refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.suite_metrics import load_models
from scaleproof.record.store import Store
from scaleproof.simulate.nccl.prediction import Way, predict
from scaleproof.spec.gpu_node import gpu_node
from scaleproof.spec.suite import load_suite

ROOT = Path(__file__).resolve().parents[3]
SUITE = load_suite("gpu_collectives", ROOT / "suites")
MODELS = load_models(ROOT / "suites" / "gpu_collectives" / "models.py")
PUBLISHED = load_published(SUITE.folder)


def verdicts(tmp_path: Path) -> dict[str, str | None]:
    return {claim.id: claim.verdict for claim in judge_suite(SUITE, "smoke", Store(tmp_path))}


def changed(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, Way], Way]) -> None:
    """From now on every prediction is changed."""
    right = MODELS.predicted
    monkeypatch.setattr(MODELS, "predicted", lambda x: change(x, right(x)))


def error() -> float:
    """The median error of the plateau."""
    return float(MODELS.nccl_plateau_error(MODELS.Nothing(), PUBLISHED))


def reversed_pairs() -> float:
    return float(MODELS.nccl_pairs_reversed(MODELS.Nothing(), PUBLISHED))


def test_every_row_has_its_entry_and_only_gated_ones_are_judged() -> None:
    kinds = {claim.form.id: claim.form.kind for claim in load_claims(SUITE)}
    assert {name: kinds[name] for name in PUBLISHED} == {
        name: "consistency" if row.gate else "context" for name, row in PUBLISHED.items()
    }


def test_the_readme_says_how_many_rows_hold(tmp_path: Path) -> None:
    found = verdicts(tmp_path)
    text = (SUITE.folder / "README.md").read_text()
    for words, plateau in (("of 64 MiB and more", True), ("smaller ones", False)):
        names = [row.id for row in PUBLISHED.values() if row.gate and (row.x["bytes"] >= 64 << 20) == plateau]
        hold = sum(found[name] == "reproduced" for name in names)
        assert re.search(rf"{hold} of {len(names)} rows {words} hold|{hold} of the {len(names)} {words}", text), hold


def test_bandwidths_that_are_40_per_cent_too_small_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert error() < 0.15
    changed(monkeypatch, lambda _, way: replace(way, algbw=0.6 * way.algbw))
    assert error() > 0.3


def test_machines_that_all_have_the_same_links_are_put_in_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reversed_pairs() == 0
    changed(monkeypatch, lambda x, way: predict(gpu_node("dgxa100"), x.collective, x.nodes, x.nbytes))
    assert reversed_pairs() > 0


def test_calls_without_latency_are_refused_where_latency_binds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = "gpu.p5.allreduce.n8.1k.time"
    assert verdicts(tmp_path)[name] == "reproduced"
    changed(monkeypatch, lambda _, way: replace(way, latency_us=0.0))
    x = next(claim for claim in load_claims(SUITE) if claim.form.id == name).form.x
    published = PUBLISHED[name].value or 0.0
    assert MODELS.nccl_time(MODELS.Call(**x), PUBLISHED) < 0.5 * published
