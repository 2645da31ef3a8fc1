"""No claim takes several cases together under one median, which would hide a case that differs: such claims are judged
`over` the fields in which their cases differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claim_form import ClaimForm
from scaleproof.claims.claims_yaml import Claim, load_claims
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.metrics import Metric
from scaleproof.spec.case import AnyCase
from scaleproof.spec.evidence import planned_evidence
from scaleproof.spec.suite import Suite, list_suites, load_suite

ROOT = Path(__file__).parents[3]
Side = tuple[str, Mapping[str, Any], Sequence[str]]
"""The name of a side, its selection, and the fields by whose values its cases are judged one by one."""


@pytest.mark.parametrize("folder", list_suites(ROOT / "suites"), ids=lambda folder: folder.name)
def test_no_median_is_taken_over_several_cases(folder: Path) -> None:
    suite = load_suite(folder)
    assert [problem for claim in load_claims(suite) for problem in pooled(suite, claim)] == []


def test_a_median_over_several_cases_is_found() -> None:
    suite = load_suite(ROOT / "suites" / "das2016")
    claims = {claim.form.id: claim for claim in load_claims(suite)}
    each = claims["das2016.own.hybrid.bytes"]
    together = Claim(each.form.model_copy(update={"over": ()}), each.row, each.metric, each.arguments)
    assert "das2016.own.hybrid.bytes, smoke, select: groups_1, groups_4, fewest_bytes" in pooled(suite, together)
    assert pooled(suite, each) == []


def pooled(suite: Suite, claim: Claim) -> list[str]:
    """Sides of a claim, at each size, that take several cases together. Identities are about every launch, and metrics
    of blocks and of levels take cases together in a way of their own."""
    form, metric = claim.form, claim.metric
    if form.experiment is None or metric is None or form.rule is None or not claim.judged:
        return []
    if form.rule.name == "equal_to_tolerance" or metric.block is not None or metric.apart is not None:
        return []
    return [
        f"{form.id}, {size}, {name}: {', '.join(case.arm for case in cases)}"
        for size, plan in suite.experiment(form.experiment).sizes.items()
        for name, select, fields in _sides(form, metric)
        for cases in _together(form, plan.cases, select, fields)
        if len(cases) > 1
    ]


def _sides(form: ClaimForm, metric: Metric) -> Iterator[Side]:
    along = (form.rule.along,) if form.rule is not None and form.rule.along is not None else ()
    for arm in form.arms or ({},):
        yield "select", {**form.select, **arm}, (*form.over, *along)
    if form.control is not None:
        yield "control", form.control.select, (*form.control.over, *along)
    if form.against is not None and metric.pair is None:  # a pair finds its own base
        yield "against", form.against, form.over
        if form.control is not None and form.control.against is not None:
            yield "control against", form.control.against, form.control.over


def _together(
    form: ClaimForm, cases: Sequence[AnyCase], select: Mapping[str, Any], fields: Sequence[str]
) -> list[list[AnyCase]]:
    """The selected cases that share a level of evidence and the values of these fields."""
    groups = defaultdict[Any, list[AnyCase]](list)
    for case in cases:
        if chosen(case, select) and (form.nbytes is None or form.nbytes in case.value("sizes", ())):
            groups[planned_evidence(case), *(case.value(field) for field in fields)].append(case)
    return list(groups.values())
