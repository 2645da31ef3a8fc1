"""docs/measuring.md: every rule and pain of its tables names existing code and an existing test, and the text names all
rows."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "measuring.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if re.match(r"\| ([PV]?\d+) \|", line)
]


def test_all_rules_and_pains_have_their_row() -> None:
    rules, pains = (
        [str(number) for number in range(1, 13)],
        [f"P{number}" for number in [*range(1, 31), *range(34, 39)]],
    )
    assert [row[0] for row in ROWS if not row[0].startswith("V")] == [*rules, *pains]


def test_rules_of_verdicts_are_numbered_without_a_gap() -> None:
    verdicts = [row[0] for row in ROWS if row[0].startswith("V")]
    assert verdicts == [f"V{number}" for number in range(1, len(verdicts) + 1)] != []
    assert f"Rows V1 to V{len(verdicts)} of the last table" in TEXT


def test_every_row_names_a_place_that_exists() -> None:
    for number, _, where, _ in ROWS:
        paths = re.findall(r"`((?:harness|suites|docs|tools|benchmarks)/[\w/.]+)`", where)
        assert paths, number
        assert [path for path in paths if not (ROOT / path).exists()] == [], number


def test_every_row_is_shown_by_a_test_that_exists() -> None:
    for number, _, _, shown_by in ROWS:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", shown_by)
        assert named, number
        assert [name for file, name in named if f"def {name}(" not in (ROOT / file).read_text()] == [], number
