"""Pages where something is missing: a claim without any value has no unit, a suite without launches says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.claims.claims_file import write_claims
from scaleproof.commands.judge import _row
from scaleproof.report.build import build
from scaleproof.spec.suite import load_suite
from tests.unit.report.report_results import SUITE, claim

UNIT = "furlong"


@pytest.mark.parametrize(("published", "ours"), [(None, None), (6.5, None), (None, 1.6)])
def test_a_unit_stands_only_beside_a_value(tmp_path: Path, published: float | None, ours: float | None) -> None:
    folder = tmp_path / "suites" / "example"
    folder.mkdir(parents=True)
    (folder / "suite.yaml").write_text(SUITE)
    update = {"published": published, "ours": ours, "interval": None, "base": None, "unit": UNIT, "reduced": ()}
    result = claim("not runnable here", 1, ()).model_copy(update=update | {"size": "full", "evidence": None})
    write_claims(tmp_path / "results" / "claims" / "example.full.json", [result])
    build(tmp_path / "results", tmp_path / "reports", "full", [load_suite(str(folder))])
    index, page = ((tmp_path / "reports" / f"{name}.html").read_text() for name in ("index", "example"))
    has_value = (published, ours) != (None, None)
    assert [UNIT in text for text in (index, page)] == [has_value, has_value]
    assert (UNIT in _row(result)) == has_value
    assert page.count(UNIT) == sum(value is not None for value in (published, ours))
    assert "No launches at this size: what is judged is arithmetic." in page and 'id="launches"' not in page
