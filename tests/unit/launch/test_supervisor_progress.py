"""Progress output while launches run."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from scaleproof.launch.progress import Bar, Lines
from tests.unit.records import failure, record


def test_plain_output_prints_failures_at_once_and_the_count_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines("s e")
    lines.begin(3, 1)
    lines.ended(record())
    lines.ended(record(status="failed", failure=failure()))
    lines.finish()
    printed = capsys.readouterr().err.splitlines()
    assert printed[0] == "s e: 3 launches, 1 finished before"
    assert printed[1] == "s e: a (2 ranks, repetition 0): rank_killed rank 1 step 3 in 'o': m; a [aa]"
    assert printed[2].startswith("s e: 3/3 launches after") and printed[2].endswith("1 without a result")
    assert len(printed) == 3


def test_what_keeps_many_launches_from_running_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines, missing = Lines("s e"), failure().model_copy(update={"message": "no trace"})
    lines.begin(4, 0)
    for message in ("no trace", "no trace", "no GPU"):
        of = missing.model_copy(update={"message": message})
        lines.ended(record(status="not_runnable", failure=of))
    lines.finish()
    printed = capsys.readouterr().err.splitlines()
    assert [line.count("no trace") + line.count("no GPU") for line in printed] == [0, 1, 1, 0]
    assert printed[1].endswith("others like it are only counted") and printed[-1].endswith("3 without a result")


def test_the_bar_shows_counts_and_prints_failures_as_they_are() -> None:
    screen = io.StringIO()
    bar = Bar("s e", Console(file=screen, force_terminal=True, width=120))
    bar.begin(2, 0)
    bar.ended(record(status="failed", failure=failure().model_copy(update={"message": "[red]not markup"})))
    bar.finish()
    assert "1/2" in screen.getvalue() and "[red]not markup" in screen.getvalue()
    assert "1 without a result" in screen.getvalue()
