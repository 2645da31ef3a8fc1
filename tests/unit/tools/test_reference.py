"""The README's tables and the reference run belong together."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.claims.claims_file import read_claims
from scaleproof.claims.judge import judge_suite
from scaleproof.record.store import Store
from scaleproof.spec.suite import list_suites, load_suite
from tools import reference


def test_readme_shows_the_tables_of_the_reference_run() -> None:
    text = (reference.ROOT / "README.md").read_text()
    assert text == reference.with_tables(text), "type `python -m tools.reference readme`"


def test_a_table_between_missing_markers_is_refused() -> None:
    with pytest.raises(SystemExit, match="0 times"):
        reference._between("no markers", "speed", "x")


def test_the_reference_records_give_the_reference_verdicts_again(tmp_path: Path) -> None:
    reference.unpack(tmp_path)
    claims = read_claims(reference.CLAIMS)
    kept = {claim.id: (claim.verdict, claim.ours) for claim in claims}
    suites = [
        load_suite(folder)
        for folder in list_suites(reference.ROOT / "suites")
        if folder.name in {claim.suite for claim in claims}
    ]
    again = [claim for suite in suites for claim in judge_suite(suite, "smoke", Store(tmp_path))]
    assert {claim.id: (claim.verdict, claim.ours) for claim in again} == kept


def test_an_archive_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"nowhere\.tar\.xz: no such archive"):
        reference.pages(tmp_path / "nowhere.tar.xz")
