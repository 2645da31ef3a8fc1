"""The pages in docs/ name files that exist, and all fields and options of a case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scaleproof.spec.case_layers import case_forms, every_key
from scaleproof.spec.common_case import form_keys

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
BASES = ("", "harness/scaleproof", "harness/scaleproof/report", "docs", "tests", "suites")
"""Folders from which a page may name a path."""
OF_OTHERS = ("scripts/tf_cnn_benchmarks/",)
"""Beginnings of paths in other projects."""
SET_BY_THE_HARNESS = {"suite", "experiment", "arm", "source"}


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


def test_the_page_of_suites_has_every_field_and_option_of_a_case() -> None:
    text = (ROOT / "docs" / "add_a_suite.md").read_text()
    fields = {key for form in case_forms().values() for key in form_keys(form)} | every_key()
    assert [key for key in sorted(fields - SET_BY_THE_HARNESS) if f"| `{key}` |" not in text] == []
    kinds = {field.partition(".")[0] for field in fields if "." in field}
    options = set(re.findall(r"^\| `(\w+\.\w+)` \|", text, re.MULTILINE))
    assert {option for option in options if option.partition(".")[0] in kinds} <= fields, (
        "options that no plugin has any more"
    )
