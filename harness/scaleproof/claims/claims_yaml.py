"""Reads a suite's published.yaml and claims.yaml and checks them against each other, the suite's experiments and the
metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from scaleproof.claims.arithmetic import Arguments, Published, arguments
from scaleproof.claims.both_ways import check_both_ways
from scaleproof.claims.claim_form import ClaimForm, Direction, PublishedRow
from scaleproof.claims.metrics import Metric
from scaleproof.claims.planned_cases import PlannedCases
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.claims.verdict_rules import accepted_region
from scaleproof.spec.case_layers import every_key
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import Document, Key, read_document, shown
from scaleproof.spec.messages import form_error
from scaleproof.spec.registry import nearest
from scaleproof.spec.suite import Suite

PUBLISHED, CLAIMS = "published.yaml", "claims.yaml"
VALIDATION = "validation"
"""The suite whose verdicts label the evidence of all other suites."""
Form = TypeVar("Form", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Claim:
    """An entry of claims.yaml with its row of the paper; None for a claim of our own."""

    form: ClaimForm
    row: PublishedRow | None
    metric: Metric | None
    arguments: Arguments
    """`x` in the form of its metric."""
    place: str = ""
    """File and line of its entry."""

    @property
    def statement(self) -> str:
        """What is claimed."""
        return self.row.statement if self.row else str(self.form.statement)

    @property
    def unit(self) -> str:
        """Unit of the published value and of ours."""
        return self.row.unit if self.row else str(self.form.unit)

    @property
    def direction(self) -> Direction | None:
        """Which way is better."""
        return self.row.direction if self.row else self.form.direction

    @property
    def published(self) -> float | int | None:
        """The published value."""
        return self.row.value if self.row else None

    @property
    def recalled(self) -> bool:
        """Whether the row is known from memory only."""
        return self.row is not None and self.row.provenance.startswith("memory")

    @property
    def judged(self) -> bool:
        """Whether its rule gives the verdict: context is only shown, what is recalled or unknown decides nothing."""
        return self.form.kind != "context" and not self.recalled and not self.not_recovered

    @property
    def not_recovered(self) -> bool:
        """Whether the published value is not available."""
        return self.row is not None and self.row.provenance == "not_recovered"


def load_published(folder: Path) -> Published:
    """The paper's rows by id; none when the suite has no published.yaml."""
    if not (folder / PUBLISHED).exists():
        return Published()
    document = read_document(folder / PUBLISHED)
    rows = document.data.get("rows") if isinstance(document.data, dict) else None
    if not isinstance(rows, list):
        raise document.error((), "no list 'rows'")
    forms = [_parse(document, ("rows", index), PublishedRow, row) for index, row in enumerate(rows)]
    return Published(_by_id(document, ("rows",), forms).values(), document)


def load_claims(suite: Suite) -> list[Claim]:
    """All claims of a suite in the order of claims.yaml; SpecError with file and line for the first thing wrong."""
    rows, metrics = load_published(suite.folder), suite_metrics(suite.folder)
    if not rows and not (suite.folder / CLAIMS).exists():
        return []
    document = read_document(suite.folder / CLAIMS)
    entries = document.data or []
    if not isinstance(entries, list):
        raise document.error((), "not a list of claims, each '- id: ...'")
    forms = _by_id(document, (), [_parse(document, (index,), ClaimForm, entry) for index, entry in enumerate(entries)])
    claims, planned = list[Claim](), PlannedCases(suite)
    for index, form in enumerate(forms.values()):
        _check_origin(document, (index,), form, rows)
        _check_experiment(document, (index,), form, suite)
        metric = _metric(document, (index,), form, metrics)
        _check_target(document, (index,), form, rows)
        _check_launch_values(document, (index,), form, metric)
        _check_floor_tolerance(document, (index,), form, metric)
        if form.validates and suite.name != VALIDATION:
            raise document.error(
                (index, "validates"), f"only suite {VALIDATION!r} says which evidence is validated; leave it out"
            )
        place = f"{shown(document.file)}:{document.line((index,))}"
        claim = Claim(form, rows.get(form.id), metric, _arguments(document, (index,), form, metric, rows), place)
        _check_gate(document, (index,), claim)
        _check_rule(document, (index,), claim)
        check_both_ways(document, (index,), form, metric, claim.published, claim.direction, planned)
        claims.append(claim)
    if without := [name for name in rows if name not in forms]:
        raise document.error((), f"row {without[0]!r} of {PUBLISHED} has no claim here")
    return claims


def _parse(document: Document, path: Key, form: type[Form], data: object) -> Form:
    try:
        return form.model_validate(data)
    except ValidationError as failed:
        raise form_error(document, path, form, failed) from None


def _by_id(document: Document, path: Key, forms: list[Form]) -> dict[str, Form]:
    by_id: dict[str, Form] = {}
    for index, form in enumerate(forms):
        name: str = getattr(form, "id")  # noqa: B009
        if name in by_id:
            raise document.error((*path, index, "id"), f"{name!r} is there twice")
        by_id[name] = form
    return by_id


def _check_gate(document: Document, path: Key, claim: Claim) -> None:
    """A row that may not decide a verdict is context, unless its value is recalled or not recovered."""
    if claim.row is None or claim.row.gate or claim.recalled or claim.not_recovered or claim.form.kind == "context":
        return
    raise document.error(
        (*path, "kind"),
        f"{claim.form.id!r} has gate false in {PUBLISHED}: it is shown, never judged; write 'kind: context'",
    )


def _check_rule(document: Document, path: Key, claim: Claim) -> None:
    """A judged claim has what its rule compares with, and a direction where the rule needs one."""
    rule = claim.form.rule
    if rule is None or rule.name == "monotone" or not claim.judged:
        return
    try:
        accepted_region(rule, claim.published, claim.direction, floor=0.0)  # any floor: it is known with launches alone
    except SpecError as wrong:
        raise document.error((*path, "rule"), str(wrong)) from None


def _check_origin(document: Document, path: Key, form: ClaimForm, rows: Mapping[str, PublishedRow]) -> None:
    if form.origin == "paper" and form.id not in rows:
        raise document.error(
            (*path, "id"),
            f"{PUBLISHED} has no row {form.id!r}; {nearest(form.id, list(rows))}; "
            "a claim of our own says 'origin: own'",
        )
    if form.origin == "own" and form.id in rows:
        raise document.error((*path, "origin"), f"{form.id!r} is a row of {PUBLISHED}")


def _check_experiment(document: Document, path: Key, form: ClaimForm, suite: Suite) -> None:
    if form.experiment is not None and form.experiment not in suite.experiments:
        raise document.error(
            (*path, "experiment"),
            f"unknown experiment {form.experiment!r}; {nearest(form.experiment, list(suite.experiments))}",
        )
    fields = sorted(every_key())
    selections = {"select": form.select, "against": form.against or {}}
    if form.control:
        control = form.control
        selections["control"] = {**control.select, **(control.against or {}), **dict.fromkeys(control.over)}
    selections["arms"] = {name: value for arm in form.arms for name, value in arm.items()}
    selections["over"] = dict.fromkeys(form.over)
    if form.validates:
        validates = form.validates
        selections["validates"] = {
            **validates.where,
            **validates.unless,
            **dict.fromkeys((*validates.alike, *validates.up_to, *validates.down_to)),
        }
    if form.rule and form.rule.along is not None:
        selections["rule"] = {form.rule.along: None}
    for key, selection in selections.items():
        for name in selection:
            own = name.startswith("options.")  # of a suite's own program: both_ways.py finds them in its cases
            if name not in fields and not own:
                raise document.error((*path, key, name), f"no case has the field {name!r}; {nearest(name, fields)}")


def _metric(document: Document, path: Key, form: ClaimForm, metrics: Mapping[str, Metric]) -> Metric | None:
    if form.metric is None:
        return None
    if form.metric not in metrics:
        raise document.error(
            (*path, "metric"), f"unknown metric {form.metric!r}; {nearest(form.metric, list(metrics))}"
        )
    metric = metrics[form.metric]
    if metric.model is None and form.experiment is None:
        raise document.error(
            (*path, "metric"),
            f"metric {form.metric!r} needs an experiment; leave it out and say in 'needs' what is missing",
        )
    if metric.own_count and form.kind == "claim":
        raise document.error(
            (*path, "kind"),
            f"metric {form.metric!r} is counted by our own code, and a claim is about the world: write 'kind: check'",
        )
    if metric.predicts and form.kind != "context":
        raise document.error(
            (*path, "kind"),
            f"metric {form.metric!r} is predicted by a model for what was not run, so no launch can refute it: "
            "write 'kind: context'",
        )
    if (metric.pair or metric.ratio_of) and form.against is None:
        raise document.error((*path, "metric"), f"metric {form.metric!r} compares: give 'against'")
    if metric.size and form.nbytes is None:
        raise document.error((*path, "metric"), f"metric {form.metric!r} is per message size: give 'nbytes'")
    return metric


def _arguments(document: Document, path: Key, form: ClaimForm, metric: Metric | None, rows: Published) -> Arguments:
    if metric is None or metric.model is None:
        if form.x:
            raise document.error((*path, "x"), "only a metric that is arithmetic has arguments; leave it out")
        return Arguments()
    return arguments(document, path, metric.x, form.x, rows)


def _check_launch_values(document: Document, path: Key, form: ClaimForm, metric: Metric | None) -> None:
    """Rule `equal_to_tolerance` judges a value of every launch; a ratio to `against` has none."""
    if form.rule is None or form.rule.name != "equal_to_tolerance" or metric is None or metric.model is not None:
        return
    if metric.pair is not None or metric.block is not None or metric.apart is not None:
        return
    compared = {"against": form.against, "control": form.control.against if form.control else None}
    for key, selection in compared.items():
        if selection is not None:
            raise document.error(
                (*path, key),
                f"{form.id!r}: rule 'equal_to_tolerance' judges every launch alone, and with 'against' metric "
                f"{form.metric!r} gives one ratio of all launches; write rule 'ratio' or 'within', "
                "or leave 'against' out",
            )


def _check_floor_tolerance(document: Document, path: Key, form: ClaimForm, metric: Metric | None) -> None:
    """A noise floor belongs to values from clocks, over launches."""
    if form.rule is None or form.rule.tolerance != "floor" or (metric is not None and metric.timing):
        return
    raise document.error(
        (*path, "rule"),
        f"{form.id!r}: 'tolerance: floor' needs a metric that comes from clocks, and {form.metric!r} does not: "
        "give a number",
    )


def _check_target(document: Document, path: Key, form: ClaimForm, rows: Mapping[str, PublishedRow]) -> None:
    """A target of our own must not equal a published figure of the same metric: it would look like theirs."""
    if form.origin == "paper" or form.rule is None:
        return
    targets = {form.rule.value, form.rule.low, form.rule.high} - {None}
    for row in rows.values():
        if row.metric == form.metric and row.value in targets:
            raise document.error(
                (*path, "rule"), f"target {row.value} of our own equals the published value of {row.id!r}"
            )
