"""A claim without a judged control is never reproduced, so every size that runs the claim runs its control too."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.launch_pool import chosen
from scaleproof.spec.suite import list_suites, load_suite
from scaleproof.spec.suite_form import NO_VERDICTS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("folder", list_suites(ROOT / "suites"), ids=lambda folder: folder.name)
def test_each_size_that_runs_a_claim_runs_its_control(folder: Path) -> None:
    suite = load_suite(folder)
    for form in (claim.form for claim in load_claims(suite)):
        if form.control is None or form.experiment is None:
            continue
        against = form.control.against or form.against
        sides = [form.control.select, *([against] if against else [])]
        for name, size in suite.experiment(form.experiment).sizes.items():
            if name not in NO_VERDICTS and any(chosen(case, form.select) for case in size.cases):
                for side in sides:
                    assert any(chosen(case, side) for case in size.cases), (form.id, name, side)
