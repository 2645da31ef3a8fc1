"""Metrics that are arithmetic: what a claim's `x` must have for each, and the published rows that it names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, ValidationInfo

from scaleproof.claims.claim_form import Form, PublishedRow
from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import Document, Key
from scaleproof.spec.messages import form_error
from scaleproof.workloads.networks import Network

MOST_WORKERS = 4096
"""Arithmetic that goes through every number of workers or nodes ends within seconds up to here."""


class Arguments(Form):
    """The `x` of a claim whose metric is arithmetic. This one takes none; a metric that does has a form of its own."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Ends:
    """The least and the largest value of arithmetic of which a condition is known as a range only. A verdict must hold
    for both; where it does not the claim is inconclusive."""

    low: float
    high: float

    @classmethod
    def of(cls, value: float | Ends) -> Ends:
        """A plain value is both."""
        return value if isinstance(value, Ends) else cls(value, value)

    @property
    def apart(self) -> float:
        """How far the largest is from the least; 0 where both are infinite."""
        return 0.0 if self.low == self.high else self.high - self.low


Given = TypeVar("Given", bound=Form)
Count = Annotated[int, Field(ge=1, le=10**9)]
Workers = Annotated[int, Field(ge=1, le=MOST_WORKERS)]
Amount = Annotated[float, Field(gt=0, le=1e18)]
Share = Annotated[float, Field(ge=0, le=1)]


class Published(dict[str, PublishedRow]):
    """The paper's rows by id, and where they stand, so that what is wrong with one is said with its line."""

    def __init__(self, rows: Iterable[PublishedRow] = (), document: Document | None = None) -> None:
        super().__init__((row.id, row) for row in rows)
        self.document = document

    def number(self, name: str) -> float:
        """The value of a row; SpecError where it has none."""
        value = self[name].value
        if value is None:
            raise self.error(name, ("value",), f"row {name!r} has no value, and a claim's arithmetic needs it")
        return value

    def positive(self, name: str) -> float:
        """The value of a row, which arithmetic divides by; SpecError unless it is more than 0."""
        if (value := self.number(name)) <= 0:
            raise self.error(name, ("value",), f"{value} is not allowed; arithmetic divides by it")
        return value

    def conditions(self, name: str, form: type[Given]) -> Given:
        """What arithmetic needs of the `x` of a row, which may have more; SpecError for the first thing wrong."""
        x = self[name].x
        misspelt = {key for key in x if difflib.get_close_matches(key, form.model_fields.keys() - x.keys())}
        try:
            return form.model_validate({key: x[key] for key in x if key in form.model_fields or key in misspelt})
        except ValidationError as failed:
            if self.document is None:
                raise
            raise form_error(self.document, (*self._path(name), "x"), form, failed) from None

    def metric_of(self, name: str, metrics: Iterable[str]) -> str:
        """The metric of a row, one of these; SpecError names the nearest."""
        metric, known = self[name].metric, list(metrics)
        if metric not in known:
            raise self.error(name, ("metric",), f"unknown metric {metric!r}; {registry.nearest(metric, known)}")
        return metric

    def _path(self, name: str) -> Key:
        return ("rows", list(self).index(name))

    def error(self, name: str, key: Key, message: str) -> SpecError:
        """What is wrong with a row, at its file and line."""
        if self.document is None:
            return SpecError(message)
        return self.document.error((*self._path(name), *key), message)


def _is_row(name: str, info: ValidationInfo) -> str:
    rows: Published | None = info.context
    if rows is not None and name not in rows:
        raise ValueError(f"published.yaml has no row {name!r}; {registry.nearest(name, list(rows))}")
    return name


def _is_workload(name: str) -> str:
    registry.get("workload", name)
    return name


RowId = Annotated[str, AfterValidator(_is_row)]
"""The id of a row of published.yaml."""
Workload = Annotated[str, AfterValidator(_is_workload)]


def network_of(workload: str) -> Network:
    """The layer-exact network."""
    network: Network = registry.load("workload", workload)(None, 1.0)
    return network


def arguments(document: Document, path: Key, form: type[Arguments], x: dict[str, Any], rows: Published) -> Arguments:
    """A claim's `x` in the form of its metric; SpecError for the first thing wrong."""
    try:
        return form.model_validate(x, context=rows)
    except ValidationError as failed:
        raise form_error(document, (*path, "x"), form, failed) from None
