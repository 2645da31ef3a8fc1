"""The suite vigna2007: every row has its claim, rows of data that are not here are shown only, and every claim of our
own finds launches at size smoke."""

from collections import Counter
from pathlib import Path

import pytest

from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.launch_pool import matches
from scaleproof.record.store import Store
from scaleproof.spec.suite import Suite, load_suite

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("vigna2007", ROOT / "suites")


def test_published_rows_are_those_of_their_sources(suite: Suite) -> None:
    rows = load_published(suite.folder)
    values = {name.removeprefix("vigna2007."): row.value for name, row in rows.items()}
    assert values == {
        "altavista2002.nodes": 1413511390,
        "altavista2002.arcs": 6636600779,
        "altavista2002.dangling": 53.74,
        "altavista2002.isolated": 49,
        "altavista2002.largest_scc": 3.54,
        "altavista2002.average_degree": 4.695,
        "altavista2002.reachable_pairs": 1.61,
        "web_stanford.nodes": 281903,
        "web_stanford.edges": 2312497,
        "web_stanford.largest_wcc": 90.6,
        "web_stanford.largest_scc": 53.4,
        "web_stanford.diameter": 674,
        "web_stanford.dangling": 172,
    }
    assert Counter(row.provenance for row in rows.values()) == {"paper": 7, "secondary": 5, "memory_medium": 1}


BOUNDS = {
    "gauss_seidel.web": {"name": "at_most", "value": 0.9},
    "gauss_seidel.one_host": {"name": "at_least", "value": 1.1},
    "gauss_seidel.no_dangling": {"name": "at_most", "value": 0.9},
    "gmres.web": {"name": "at_most", "value": 0.9},
    "gmres.time": {"name": "at_least", "value": 1.0},
    "gauss_seidel.time": {"name": "ordering"},
    "iterations.structure": {"name": "ordering"},
    "iterations.no_dangling": {"name": "ordering"},
    "iterations.one_host": {"name": "ordering"},
    "iterations.padded": {"name": "ratio", "low": 0.95, "high": 1.05},
    "nodes_per_s.padded": {"name": "ordering"},
    "arcs_per_s.padded": {"name": "ordering"},
}
"""The rule of each claim of our own, as it was written before anything was measured."""


def test_bounds_are_those_that_were_written_before_anything_was_measured(suite: Suite) -> None:
    rules = {
        claim.form.id.removeprefix("vigna2007.own."): claim.form.rule.model_dump(
            exclude_defaults=True, exclude={"effect"}
        )
        for claim in load_claims(suite)
        if claim.form.origin == "own" and claim.form.kind == "claim" and claim.form.rule
    }
    assert rules == BOUNDS


def test_without_launches_only_arithmetic_is_judged(suite: Suite, tmp_path: Path) -> None:
    results = {result.id: result for result in judge_suite(suite, "smoke", Store(tmp_path))}
    judged = {name.removeprefix("vigna2007.") for name, result in results.items() if result.verdict == "reproduced"}
    assert judged == {"altavista2002.average_degree", "web_stanford.largest_wcc", "web_stanford.largest_scc"}
    assert {result.verdict for result in results.values() if result.kind == "context"} == {None}
    assert results["vigna2007.web_stanford.dangling"].verdict == "unverified"
    assert {result.verdict for result in results.values() if result.origin == "own"} == {"not run at this size"}


@pytest.mark.parametrize("size", ["smoke", "small", "full"])
def test_every_claim_of_our_own_has_launches_on_all_its_sides(suite: Suite, size: str) -> None:
    chosen = suite.experiment("pagerank").size(size)
    assert chosen.launches >= 6
    for claim in load_claims(suite):
        form = claim.form
        sides = [form.select, form.against, form.control.select if form.control else None]
        for side in sides if form.origin == "own" else []:
            assert side is None or any(matches(case, side) for case in chosen.cases), f"{form.id}: {side}"
