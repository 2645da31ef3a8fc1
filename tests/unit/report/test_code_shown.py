"""The head of the index says which commit, machine and code its launches are of, what judged their claims, and what has
changed since."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.claims import suite_metrics
from scaleproof.claims.judging_version import judging_version
from scaleproof.core.record_schema import Code, Record
from scaleproof.record.used_code import content_hash
from scaleproof.report.code_shown import code_shown
from tests.unit.records import record

MODULE = "scaleproof.stats.intervals"
SUITE = Path(__file__).parents[3] / "suites" / "micro"
NOW = Code(version="0", commit="c" * 40, dirty=False, digest="d", files={MODULE: content_hash(MODULE)})


def shown(*records: Record, suite: Path = SUITE, judged_by: str = "") -> list[str]:
    data: Any = [
        SimpleNamespace(
            name=suite.name,
            suite=SimpleNamespace(folder=suite),
            claims=[None] if judged_by else [],
            judged_by=judged_by,
            runs=[SimpleNamespace(record=each) for each in (*records, None)],
        )
    ]
    return [str(fact.value) for fact in code_shown(data)]


def test_one_run_of_todays_code_is_said_in_short() -> None:
    assert shown(record("aa", code=NOW), record("bb", code=NOW)) == [
        "2 launches of commit cccccccccc on machine m",
        "unchanged since the launches",
        "by the rules and claims as they are now",
    ]
    assert shown() == []


@pytest.mark.parametrize(
    ("other", "line", "text"),
    [
        (
            {"code": NOW.model_copy(update={"commit": "d" * 40})},
            0,
            "2 launches of 2 commits (cccccccccc, dddddddddd) on machine m",
        ),
        ({"code": NOW, "machine": "n"}, 0, "2 launches of commit cccccccccc on 2 machines (m, n)"),
        ({"code": NOW.model_copy(update={"dirty": True})}, 0, "with changes that no commit has"),
        (
            {"code": NOW.model_copy(update={"digest": "e"})},
            1,
            "2 versions behind measured launches; unchanged since the launches",
        ),
        ({"code": NOW.model_copy(update={"files": {MODULE: "0"}})}, 1, "changed since 1 of the launches"),
    ],
)
def test_a_mixture_and_older_code_are_named(other: dict[str, Any], line: int, text: str) -> None:
    assert text in shown(record("aa", code=NOW), record("bb", **other))[line]


@pytest.mark.parametrize("file", ["claims.yaml", "published.yaml", "suite.yaml", "models.py"])
def test_verdicts_of_earlier_rules_or_claims_are_named(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("")
    version = judging_version(tmp_path)
    assert (
        shown(record("aa", code=NOW), suite=tmp_path, judged_by=version)[2] == "by the rules and claims as they are now"
    )
    (tmp_path / file).write_text("# another rule\n")
    text = shown(record("aa", code=NOW), suite=tmp_path, judged_by=version)[2]
    assert text.startswith(f"{tmp_path.name} by an earlier or unknown version")


def test_the_version_of_what_judges_has_the_rooms_of_rules_and_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = judging_version(tmp_path)
    hashed: list[str] = []

    def other_rooms(*rooms: str) -> str:
        hashed.extend(rooms)
        return "other"

    monkeypatch.setattr(suite_metrics, "rooms_digest", other_rooms)
    assert judging_version(tmp_path) != before
    assert {"claims", "stats"} <= set(hashed)
