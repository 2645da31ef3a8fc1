"""Claims that cannot fall both ways whatever is launched are mistakes of the suite, told when it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from scaleproof.claims.claim_form import ClaimForm, Direction
from scaleproof.claims.metrics import Metric
from scaleproof.claims.planned_cases import PlannedCases
from scaleproof.claims.possible_values import cannot_fall
from scaleproof.spec.locate import Document, Key
from scaleproof.spec.messages import brief


class Selection(NamedTuple):
    """Cases that a claim selects: all fields, and those of them that stand at a key of its entry."""

    key: Key
    own: Mapping[str, Any]
    select: Mapping[str, Any]


def check_both_ways(
    document: Document,
    path: Key,
    form: ClaimForm,
    metric: Metric | None,
    published: float | None,
    direction: Direction | None,
    planned: PlannedCases,
) -> None:
    """A claim must be able to fall both ways, with launches enough."""
    if form.experiment is not None:
        _check_selected(document, path, form, planned)
    if form.experiment is not None and metric is not None and metric.timing:
        _check_alone(document, path, form, planned)
    if form.kind == "context" or form.rule is None or metric is None or metric.model is not None:
        return
    if reason := cannot_fall(form.rule, metric, published, direction):
        raise document.error((*path, "rule"), f"{form.id!r}: {reason}")
    if form.experiment is not None and (wrong := _same_cases(form, planned) or _trend_without_steps(form, planned)):
        key, reason = wrong
        raise document.error((*path, *key), f"{form.id!r}: {reason}")


def _check_selected(document: Document, path: Key, form: ClaimForm, planned: PlannedCases) -> None:
    """Every value that is selected is one of some case, and every selection has a case."""
    experiment = str(form.experiment)
    for key, own, select in _selections(form):
        if wrong := planned.absent(experiment, own):
            raise document.error((*path, *key, wrong[0]), wrong[1])
        if not planned.chosen(experiment, select):
            fields = ", ".join(f"{name} {brief(value)}" for name, value in select.items())
            raise document.error((*path, *key), f"no case of experiment {experiment!r} has {fields} at any size")
    for key, names in _named(form):
        options = [name for name in names if name.startswith("options.")]  # others are fields of some program's cases
        if wrong := planned.without(experiment, options):
            raise document.error((*path, *key), wrong[1])


def _check_alone(document: Document, path: Key, form: ClaimForm, planned: PlannedCases) -> None:
    """What comes from clocks is of launches beside which nothing else ran."""
    experiment = str(form.experiment)
    for key, _, select in _selections(form):
        if planned.beside_others(experiment, planned.chosen(experiment, select)):
            raise document.error(
                (*path, "metric"),
                f"{form.id!r}: metric {form.metric!r} comes from clocks, and launches of experiment {experiment!r} run "
                f"beside others ({'.'.join(map(str, key))}); leave out its 'timed: false', or choose another metric",
            )


def _named(form: ClaimForm) -> Iterator[tuple[Key, Iterable[str]]]:
    """Fields that are named without a value: to judge along, or at each of their values."""
    yield ("over",), form.over
    if form.control is not None:
        yield ("control", "over"), form.control.over
    if form.validates is not None:
        alike = (*form.validates.alike, *form.validates.up_to, *form.validates.down_to)
        yield ("validates",), (*form.validates.where, *form.validates.unless, *alike)
    if form.rule is not None and form.rule.along is not None:
        yield ("rule", "along"), (form.rule.along,)


def _selections(form: ClaimForm) -> Iterator[Selection]:
    """Of all sides of the claim and of its control."""
    yield Selection(("select",), form.select, form.select)
    if form.against is not None:
        yield Selection(("against",), form.against, form.against)
    for index, arm in enumerate(form.arms):
        yield Selection(("arms", index), arm, {**form.select, **arm})
    if form.control is not None:
        yield Selection(("control", "select"), form.control.select, form.control.select)
        if form.control.against is not None:
            yield Selection(("control", "against"), form.control.against, form.control.against)


def _same_cases(form: ClaimForm, planned: PlannedCases) -> tuple[Key, str] | None:
    """What is compared with itself, at which key, and why that decides nothing."""

    def cases(select: Mapping[str, Any] | None) -> frozenset[str] | None:
        return None if select is None else planned.chosen(str(form.experiment), select)

    own, against = cases(form.select), cases(form.against)
    if form.base_evidence is None and own == against:
        return ("against",), "'against' selects what 'select' does: no launch can refute it or confirm it"
    arms = [cases({**form.select, **arm}) or frozenset() for arm in form.arms]
    for (first, one), (second, other) in combinations(enumerate(arms), 2):
        if one & other:
            return ("arms", second), f"arms {first + 1} and {second + 1} have the same cases: no order can hold"
    control = form.control
    if control and (cases(control.select), cases(control.against or form.against)) == (own, against):
        return ("control",), "the control selects what the claim selects: no launch can confirm it"
    return None


def _trend_without_steps(form: ClaimForm, planned: PlannedCases) -> tuple[Key, str] | None:
    """A trend needs two values along which it rises or falls."""
    rule = form.rule
    if rule is None or rule.along is None:
        return None
    if planned.most_steps(str(form.experiment), form.select, rule.along) > 1:
        return None
    return ("rule",), f"no size plans two values of {rule.along!r}, along which it could rise or fall"
