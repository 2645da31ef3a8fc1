"""Tables on a terminal and in a pipe."""

from __future__ import annotations

import re

import pytest
import rich.console
from rich.text import Text

from scaleproof.commands import common

ROWS: list[list[str | Text]] = [["x", "1"], ["a long cell", "two\nlines"], ["ü漢字", Text("red", style="red")]]


@pytest.mark.parametrize(
    ("columns", "rows", "title"),
    [
        (["a", "bcd"], ROWS, ""),
        (["a", "bcd"], ROWS[:1], "a title"),
        (["alone"], [], "nothing"),
        (["a", "b"], [["short"]], ""),
    ],
)
def test_a_pipe_gets_what_a_wide_terminal_shows(
    monkeypatch: pytest.MonkeyPatch, columns: list[str], rows: list[list[str | Text]], title: str
) -> None:
    wide = rich.console.Console
    monkeypatch.setattr(rich.console, "Console", lambda **how: wide(width=1000, **how))

    def visible_lines(text: str) -> list[str]:
        return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip().splitlines()]

    assert visible_lines(common._plain(columns, rows, title)) == visible_lines(common._drawn(columns, rows, title))


def test_nothing_is_folded_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    common.print_table(["wide"], [["x" * 3000]])
    assert "x" * 3000 in capsys.readouterr().out
