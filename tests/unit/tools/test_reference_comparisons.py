"""The comparisons with other tools at size full: one run, and a table that is written from its verdicts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from scaleproof.claims.claims_file import ClaimResult, write_claims
from tests.unit.report.report_results import claim
from tests.unit.tools.test_reference_run import COMMIT, write_launch
from tools.reference import REFERENCE, comparisons, own_runs


def rows(section: str) -> dict[str, list[str]]:
    """Cells by the claim's name."""
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return {cells[1]: cells[2:-1] for cells in ([cell.strip() for cell in line.split("|")] for line in lines)}


def test_a_row_says_what_the_verdict_says(tmp_path: Path) -> None:
    shutil.copyfile(REFERENCE / own_runs.COMPARISONS, tmp_path / own_runs.COMPARISONS)
    form = json.loads((tmp_path / own_runs.COMPARISONS).read_text())
    first, second, *_ = form["comparisons"]
    first |= {"claim": "crosscheck.one", "ratio": 1.2, "low": 1.1, "high": 1.3, "verdict": "not reproduced"}
    second |= {"claim": "crosscheck.two", "verdict": "inconclusive", "reason": "within floor", "minutes": None}
    (tmp_path / own_runs.COMPARISONS).write_text(json.dumps(form))
    shown = rows(comparisons.section(tmp_path))
    assert shown["one"][:2] == ["1.200", "1.100 to 1.300"] and shown["one"][-1] == "differ"
    assert shown["two"][-1].startswith("open: the noise floor is larger") and shown["two"][3] == ""


@pytest.mark.parametrize("other", [False, True])
def test_launches_of_two_commits_are_no_run(tmp_path: Path, other: bool) -> None:
    results, reference = tmp_path / "results", tmp_path / "reference"
    reference.mkdir()
    write_claims(
        results / "claims" / "crosscheck.full.json", [replaced(claim("reproduced", 1, ("aa", "bb")), "crosscheck.mine")]
    )
    environment = {"cpu": "a processor", "cores": 2}
    for launch, commit in (("aa", COMMIT), ("bb", "b" * 40 if other else COMMIT)):
        write_launch(
            results, launch, code={"commit": commit}, environment=environment, started_at="2026-11-25T01:02:03"
        )
    if other:
        with pytest.raises(SystemExit, match="not one run: launches of 2 commits"):
            comparisons.keep(results, reference)
        return
    comparisons.keep(results, reference)
    own_runs.check(reference, [own_runs.COMPARISONS])
    section = comparisons.section(reference)
    assert "2026-11-25 (a processor, 2 cores" in section and rows(section)["mine"][-1] == "agree"


def replaced(result: ClaimResult, name: str) -> ClaimResult:
    return result.model_copy(update={"id": name})
