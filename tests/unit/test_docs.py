"""The pages in docs/ name files that exist, and all fields and options of a case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scaleproof.spec.case_layers import SET_BY_HARNESS, every_key
from tools import field_page

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
BASES = ("", "harness/scaleproof", "harness/scaleproof/report", "docs", "tests", "suites")
"""Folders from which a page may name a path."""
OF_OTHERS = ("scripts/tf_cnn_benchmarks/",)
"""Beginnings of paths in other projects."""


def named_files(text: str) -> set[str]:
    """Python files and pages that a text names with their folder."""
    paths = set(re.findall(r"`([\w.-]+(?:/[\w.-]+)+\.(?:py|md))`", text))
    return {path for path in paths if not path.startswith(OF_OTHERS)}


def linked_files(text: str) -> set[str]:
    """Files of this project that a text links to."""
    return {link for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text) if "://" not in link}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_named_file_exists(page: Path) -> None:
    text = page.read_text()
    dead = [path for path in named_files(text) if not any((ROOT / base / path).exists() for base in BASES)]
    dead += [link for link in linked_files(text) if not (page.parent / link).exists()]
    assert dead == []


def test_the_page_of_fields_agrees_with_the_forms() -> None:
    assert field_page.PAGE.read_text() == field_page.page(), "type `python -m tools.field_page`"


def test_the_page_of_fields_has_every_field_and_option_of_a_case_with_its_meaning() -> None:
    rows = [line for line in field_page.page().splitlines() if line.startswith("| `")]
    keys = {row.split("`")[1] for row in rows}
    assert every_key() - set(SET_BY_HARNESS) <= keys
    assert [row for row in rows if not row.rpartition(" | ")[2].strip(" |")] == []
