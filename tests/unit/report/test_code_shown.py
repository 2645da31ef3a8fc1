"""The head of the index says which commit, machine and code its launches are of, and what has changed since."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.core.record_schema import Code, Record
from scaleproof.record.used_code import content_hash
from scaleproof.report.code_shown import code_shown
from tests.unit.records import record

MODULE = "scaleproof.stats.intervals"
NOW = Code(version="0", commit="c" * 40, dirty=False, digest="d", files={MODULE: content_hash(MODULE)})


def shown(*records: Record) -> list[str]:
    data: Any = [SimpleNamespace(runs=[SimpleNamespace(record=each) for each in (*records, None)])]
    return [str(fact.value) for fact in code_shown(data)]


def test_one_run_of_todays_code_is_said_in_short() -> None:
    assert shown(record("aa", code=NOW), record("bb", code=NOW)) == [
        "2 of commit cccccccccc on machine m",
        "as it is now",
    ]
    assert shown() == []


@pytest.mark.parametrize(
    ("other", "line", "text"),
    [
        (
            {"code": NOW.model_copy(update={"commit": "d" * 40})},
            0,
            "2 of 2 commits (cccccccccc, dddddddddd) on machine m",
        ),
        ({"code": NOW, "machine": "n"}, 0, "2 of commit cccccccccc on 2 machines (m, n)"),
        ({"code": NOW.model_copy(update={"dirty": True})}, 0, "with changes that no commit has"),
        ({"code": NOW.model_copy(update={"digest": "e"})}, 1, "2 versions behind measured launches; as it is now"),
        ({"code": NOW.model_copy(update={"files": {MODULE: "0"}})}, 1, "that of 1 launches has changed since"),
    ],
)
def test_a_mixture_and_older_code_are_named(other: dict[str, Any], line: int, text: str) -> None:
    assert text in shown(record("aa", code=NOW), record("bb", **other))[line]
