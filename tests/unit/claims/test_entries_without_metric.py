"""Rows of a paper that nothing of ours stands beside: why, in words that name only what the entry names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scaleproof.claims.claims_file import ClaimResult
from scaleproof.claims.judge import judge_suite
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import load_suite
from tests.unit.claims.claims_samples import SUITE_OF_A_TRAINING

SUITE = (
    SUITE_OF_A_TRAINING
    + """\
    arms: {gloo: {transport: gloo}}
    sizes: {smoke: {launches: 6, matrix: [{arms: [gloo]}]}}
"""
)
ROW: dict[str, Any] = {
    "id": "mine.row",
    "paper": "mine",
    "statement": "s",
    "metric": "layers",
    "unit": "layers",
    "direction": None,
    "x": {},
    "value": 64,
    "baseline": None,
    "where": None,
    "source": "s",
    "provenance": "secondary",
    "gate": True,
}
RECALLED = {**ROW, "provenance": "memory_low", "gate": False}


def judged(folder: Path, row: dict[str, Any], entry: dict[str, Any]) -> ClaimResult:
    suite = folder / "mine"
    suite.mkdir()
    (suite / "suite.yaml").write_text(SUITE)
    (suite / "published.yaml").write_text(yaml.safe_dump({"key": "mine", "rows": [row]}))
    (suite / "claims.yaml").write_text(yaml.safe_dump([{"id": "mine.row", **entry}]))
    (result,) = judge_suite(load_suite("mine", folder), "smoke", Store(folder / "results"))
    return result


@pytest.mark.parametrize(
    ("row", "entry", "verdict", "reason"),
    [
        (ROW, {"kind": "context"}, None, "nothing of ours to show"),
        (ROW, {"kind": "context", "needs": "a GPU"}, None, "needs a GPU"),
        (ROW, {"needs": "a GPU"}, "not runnable here", "needs a GPU"),
        (RECALLED, {"kind": "context"}, None, "nothing of ours to show"),
        (RECALLED, {"needs": "a GPU"}, "unverified", "nothing of ours to show: needs a GPU"),
    ],
)
def test_a_reason_names_what_the_entry_names(
    tmp_path: Path, row: dict[str, Any], entry: dict[str, Any], verdict: str | None, reason: str
) -> None:
    result = judged(tmp_path, row, entry)
    assert (result.verdict, result.reason) == (verdict, reason)


@pytest.mark.parametrize("kind", ["claim", "consistency", "check"])
def test_what_is_judged_and_has_no_metric_says_what_it_needs(tmp_path: Path, kind: str) -> None:
    with pytest.raises(SpecError, match="a claim without a metric says in 'needs' what is missing here"):
        judged(tmp_path, ROW, {"kind": kind})
