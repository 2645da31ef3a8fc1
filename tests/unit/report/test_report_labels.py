"""The verdicts of suite `validation` stand beside every emulated and simulated number of the report."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claims_file import Label, write_claims
from scaleproof.record.store import Store
from scaleproof.report.build import build
from tests.unit.claims.test_claims_validation import verdict
from tests.unit.report.report_levels import levels_example
from tests.unit.report.report_results import claim
from tools.reference.tables import counts, totals, verdicts_page
from tools.reference.verdicts import NUMBERS, Verdict

MADE_UP = {"machine": "madeup", "code": "d" * 16, "judged_on": [{}]}
EMULATED: dict[str, Any] = {"what": "emulation", "evidence": "emulated"}
SIMULATED: dict[str, Any] = {"what": "predictions", "evidence": "simulated"}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report whose emulation was validated and whose predictions were not, with claims at each level and one that is
    not reproduced."""
    root = tmp_path_factory.mktemp("labels")
    results, suite = levels_example(root)
    validations = [
        verdict("reproduced", "validation.emulation", EMULATED, **MADE_UP),
        verdict("not reproduced", "validation.prediction", SIMULATED, **MADE_UP, missed_by=0.07),
    ]
    write_claims(results / "claims" / "validation.full.json", validations)
    runs: dict[str, tuple[str, ...]] = {
        level: tuple(record.launch for record in Store(results).records() if record.evidence == level)
        for level in ("measured", "emulated", "simulated")
    }
    verdicts: list[tuple[Any, Any]] = [
        ("measured", "reproduced"),
        ("emulated", "reproduced"),
        ("simulated", "reproduced"),
        ("simulated", "not reproduced"),
    ]
    old = Label(standing="not validated here", why=("as it was when this claim was judged",))
    judged = [
        claim(word, number, runs[level]).model_copy(
            update={
                "suite": "levels",
                "size": "full",
                "evidence": level,
                "id": f"levels.{level}{number}",
                "label": None if level == "measured" else old,
            }
        )
        for number, (level, word) in enumerate(verdicts)
    ]
    write_claims(results / "claims" / "levels.full.json", judged)
    build(results, root / "reports", "full", [suite])
    return root / "reports"


def test_the_index_counts_verdicts_on_missed_evidence_apart(reports: Path) -> None:
    text = (reports / "index.html").read_text()
    assert "reproduced <b>3</b> <span>(1 on evidence whose validation was missed)</span>" in text
    assert "not reproduced <b>1</b> <span>(1 on evidence whose validation was missed)</span>" in text
    for label in ("emulated (validated)", "simulated (validation missed)", "is missed by 0.07 x: 1.12 is not between"):
        assert label in text
    assert "measured (" not in text and "as it was" not in text


def test_a_suites_page_says_why(reports: Path) -> None:
    text = (reports / "levels.html").read_text()
    assert (
        "<dt>Evidence</dt><dd>simulated (validation missed): validation.prediction (size smoke) is missed by 0.07 x"
        in text
    )
    assert "<dt>Evidence</dt><dd>emulated (validated): validation.emulation (size smoke)" in text


def test_every_launch_has_its_label_on_its_page_and_in_the_copy(reports: Path) -> None:
    rows = list(csv.DictReader((reports / "runs.csv").read_text().splitlines()))
    standing = {"measured": "", "emulated": "validated", "simulated": "missed"}
    alone = [row for row in rows if row["evidence"] == "simulated" and row["ranks"] == "1" and row["status"] == "ok"]
    assert alone and all(row["validation"] == "" for row in alone), "one rank sends nothing"
    others = [row for row in rows if row["status"] == "ok" and row not in alone]
    assert {row["evidence"] for row in others} == set(standing) and all(
        row["validation"] == standing[row["evidence"]] for row in others
    )
    simulated = next(row for row in others if row["evidence"] == "simulated")
    assert "simulated (validation missed)" in (reports / "runs" / f"{simulated['launch']}.html").read_text()


NOTHING: dict[str, Any] = dict.fromkeys(Verdict._fields, "") | dict.fromkeys(NUMBERS)


def test_the_readme_counts_them_in_brackets() -> None:
    common = {**NOTHING, "suite": "s", "id": "s.claim", "kind": "claim", "origin": "paper", "verdict": "reproduced"}
    verdicts = [Verdict(**{**common, "standing": standing}) for standing in ("", "missed", "validated")]
    assert "| published | 3: reproduced 3 (1 where validation missed) |" in totals(verdicts).splitlines()


def test_the_readme_counts_checks_apart() -> None:
    own = {**NOTHING, "suite": "s", "origin": "own", "launches": 6}
    verdicts = [
        Verdict(**{**own, "id": "s.claim", "kind": "claim", "verdict": "reproduced"}),
        Verdict(**{**own, "id": "s.check", "kind": "check", "verdict": "holds"}),
    ]
    assert totals(verdicts).splitlines()[3:5] == ["| our own | 1: reproduced 1 |", "| checks | 1: holds 1 |"]
    head, _, row = counts(verdicts)
    assert head == "| suite | published | our own | checks | consistency |"
    assert row == "| s |  | 1: reproduced 1 | 1: holds 1 |  |"
    claims, checks = verdicts_page(verdicts, "").split("## Checks")
    assert "Each of the 1 claims" in claims and "s.check" not in claims and "`s.check`" in checks


def test_counts_are_by_suite_whatever_the_ids_begin_with() -> None:
    verdict = {**NOTHING, "suite": "gpu_collectives", "id": "gpu.a", "kind": "claim", "verdict": "reproduced"}
    assert counts([Verdict(**verdict)])[2].startswith("| gpu_collectives |")


def test_the_readme_counts_soft_roce_and_reduced_networks_in_brackets() -> None:
    common = {**NOTHING, "suite": "s", "id": "s.claim", "kind": "claim", "origin": "paper"}
    common |= {"verdict": "unverified", "launches": 6}
    verdicts = [
        Verdict(**{**common, "details": "soft-RoCE", "origin": "own", "evidence": "emulated", "ours": 1.0}),
        Verdict(**{**common, "work_factor": "110"}),
    ]
    row = counts(verdicts)[2]
    assert row == "| s | 1: unverified 1 (1 reduced, not comparable) | 1: unverified 1 (1 over soft-RoCE) |  |  |"
    assert "| emulated, soft-RoCE |" in verdicts_page(verdicts, "")
