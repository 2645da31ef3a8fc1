"""Every sentence about a verdict or a comparison is replaced by noise. Verdicts, exit codes and the structure of the
pages stay the same, so no code reads a sentence."""

from __future__ import annotations

import inspect
import random
import string
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from scaleproof.claims import difference_sentences, note_sentences, sentences
from scaleproof.claims.claims_file import ClaimResult, read_claims
from scaleproof.cli import main
from scaleproof.compare import comparison_sentences
from scaleproof.record.store import Store
from scaleproof.report.build import build
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import Suite, load_suite
from tests.noise_floors import calibrate_for_suite
from tests.unit.claims.test_judge import SPEEDUP, SUITE, commit, one_rank_takes_twice_as_long
from tests.unit.compare.compare_records import FAST, NEW, OLD, SLOW, two_commits

MAKERS = (sentences, difference_sentences, note_sentences, comparison_sentences)
SWEPT = "sweep: {minibatch: [16, 32]}"
RANGE = f"{{arms: [gloo, alone], {SWEPT}}}, {{arms: [alone], set: {{ranks: 1}}, {SWEPT}}}, "
PLAIN = {**SPEEDUP, "select": {"transport": "gloo", "minibatch": 8}, "against": {"ranks": 1, "minibatch": 8}}
ALONE = {name: value for name, value in PLAIN.items() if name != "against"} | {
    "metric": "throughput",
    "select": {"minibatch": 8},
}
TREND = {"name": "monotone", "along": "ranks", "trend": "rising"}
CLAIMS: list[dict[str, Any]] = [
    {**PLAIN, "control": {"statement": "s", "select": {"ranks": 1, "minibatch": 8}}},
    {**PLAIN, "id": "mine.own.shown_too", "control": {"statement": "s", "select": {"transport": "tcp"}}},
    {**PLAIN, "id": "mine.own.too_much", "rule": {"name": "at_least", "value": 5}},
    {**PLAIN, "id": "mine.own.range", "select": {"transport": "gloo", "minibatch": [16, 32]}, "over": ["minibatch"]},
    {**ALONE, "id": "mine.own.trend", "rule": TREND},
    {**ALONE, "id": "mine.own.same", "rule": {"name": "equal_to_tolerance", "value": 80, "tolerance": 80}},
    {**PLAIN, "id": "mine.own.planned_elsewhere", "select": {"minibatch": 64}},
]


class Structure(HTMLParser):
    """Elements of a page in their order, without texts and titles."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Store tag and classes."""
        self.elements.append((tag, tuple(sorted(value or "" for name, value in attrs if name == "class"))))


def noise(value: Any) -> Any:
    """Random letters in place of a sentence, or of each sentence of a list."""
    if isinstance(value, str):
        return "".join(random.choices(string.ascii_letters + ";: ,.", k=random.randint(1, 400)))
    return [noise(sentence) for sentence in value]


def noisy(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **fields: noise(make(*args, **fields))


def replace_sentences(patch: pytest.MonkeyPatch) -> int:
    """Replace the results of all public functions that make sentences. Returns the number of these functions."""
    makers = [(module, name, make) for module in MAKERS for name, make in _makers(module)]
    for module, name, make in makers:
        patch.setattr(module, name, noisy(make))
    return len(makers)


def _makers(module: ModuleType) -> list[tuple[str, Callable[..., Any]]]:
    return [
        (name, function)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_") and name != "number"
    ]


@pytest.fixture
def measured(tmp_path: Path) -> Suite:
    """A suite with a claim of each kind of rule, and its launches."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "suite.yaml").write_text(SUITE.replace("matrix: [", f"matrix: [{RANGE}"))
    (folder / "claims.yaml").write_text(yaml.safe_dump(CLAIMS))
    suite, store = load_suite("mine", tmp_path), Store(tmp_path / "results")
    calibrate_for_suite(tmp_path / "results", suite, "smoke")
    for launch in plan(suite, "speed", "smoke"):
        commit(store, launch, one_rank_takes_twice_as_long(launch), {})
    return suite


def judged(folder: Path) -> tuple[int, list[ClaimResult]]:
    """Exit code and results of `scaleproof judge`."""
    code = main(["judge", "mine", "--size", "smoke", "--results", str(folder / "results"), "--suites", str(folder)])
    return code, list(read_claims(folder / "results" / "claims" / "mine.smoke.json").claims)


def facts(results: list[ClaimResult]) -> list[dict[str, Any]]:
    """Results without their sentences."""
    without_sentences = []
    for result in results:
        values = result.model_dump(exclude={"rule", "reason", "warnings"})
        if values["interval"]:
            del values["interval"]["method"]
        if values["control"] and values["control"]["interval"]:
            del values["control"]["interval"]["method"]
        without_sentences.append(values)
    return without_sentences


def structures(folder: Path, suite: Suite, name: str) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Structure of the index and of the suite's page."""
    pages = build(folder / "results", folder / name, "smoke", [suite]).parent
    return {page: Structure(pages / page).elements for page in ("index.html", "mine.html")}


def test_noise_for_sentences_leaves_verdicts_and_pages_as_they_are(
    measured: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, results = judged(tmp_path)
    verdicts = {result.id: result.verdict for result in results}
    assert {"reproduced", "not reproduced", "inconclusive", "not run at this size"} <= set(verdicts.values())
    before = structures(tmp_path, measured, "before")
    assert replace_sentences(monkeypatch) > 10
    noisy_code, noisy_results = judged(tmp_path)
    assert noisy_code == code and facts(noisy_results) == facts(results)
    assert [result.rule for result in noisy_results] != [result.rule for result in results]
    assert structures(tmp_path, measured, "after") == before


@pytest.mark.parametrize(("second", "expected"), [(SLOW, 1), (FAST, 0)])
def test_noise_for_sentences_leaves_the_exit_code_of_a_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: tuple[float, ...], expected: int
) -> None:
    results = two_commits(tmp_path / "results", second)

    def compare(name: str) -> tuple[int, list[tuple[str, tuple[str, ...]]]]:
        page = tmp_path / name
        arguments = ["compare", OLD, NEW, "--results", str(results), "--fail-on", "regression", "--page", str(page)]
        return main(arguments), Structure(page).elements

    code, elements = compare("before.html")
    assert code == expected
    replace_sentences(monkeypatch)
    assert compare("after.html") == (code, elements)
