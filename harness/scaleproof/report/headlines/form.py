"""The form of figures.yaml: the main figures of a suite, in the order of its page."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scaleproof.core.record_schema import Evidence


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class XAxis(_Form):
    """What the x axis counts."""

    label: str = Field(description="Text of the axis, with the unit.")
    field: str = Field(
        description="Field of the case that x is; `nbytes` for metrics per message size; of curves (kind convergence) "
        "samples, steps or seconds."
    )
    log: bool = Field(False, description="Logarithmic axis, of curves; what lies at 0 is left out.")
    row: str | None = Field(None, description="Key of a published row's `x` that has its position on this axis.")
    offset: int = Field(0, description="A number that is added to the field, where the axis does not count all ranks.")


class LabelledLine(_Form):
    """A value that curves are compared with."""

    value: float = Field(description="Its place on the y axis.")
    label: str = Field(description="Text beside the line.")


class YAxis(_Form):
    """What the y axis shows."""

    label: str = Field(description="Text of the axis, with the unit and which direction is better.")
    log: bool = Field(False, description="Logarithmic axis.")
    ideal: Literal["x"] | float | None = Field(None, description="A dashed line: `x` for y = x, or a value.")
    lines: tuple[LabelledLine, ...] = Field((), description="Dashed lines with a label, of curves.")
    inverse: bool = Field(False, description="Ratios are `against` over `select`: half the time is twice as fast.")
    difference: bool = Field(False, description="Ratios are drawn as what lies above 1: 1.05 as 0.05, 0.9 as -0.1.")
    percent_as_ratio: bool = Field(False, description="Values in percent more are drawn as ratios: 169 % as 2.69.")


class SeriesForm(_Form):
    """One series: the value of a claim, several claims over what their rows count, or the figure's metric over the
    selected launches."""

    name: str = Field(description="Its entry in the legend.")
    claim: str | None = Field(None, description="Id of a claim whose value and interval are drawn.")
    claims: tuple[str, ...] = Field(
        (),
        description="Ids of claims with published rows, for kinds that draw them: ours over the published value, at "
        "the place of the row.",
    )
    select: dict[str, Any] = Field({}, description="Fields of the cases whose launches are drawn.")
    against: dict[str, Any] | None = Field(None, description="Fields of the cases that a ratio is taken against.")
    published: tuple[str, ...] = Field((), description="Ids of rows of published.yaml that are drawn beside ours.")

    @model_validator(mode="after")
    def _has_one_source(self) -> SeriesForm:
        if [bool(source) for source in (self.claim, self.claims, self.select)].count(True) != 1:
            raise ValueError(f"series {self.name!r} needs 'claim', 'claims' or 'select', one of them")
        if not self.select and self.against is not None:
            raise ValueError(f"series {self.name!r}: a claim has its own 'against'; leave it out here")
        return self


class FigureForm(_Form):
    """One entry of figures.yaml."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")] = Field(description="Its anchor on the page.")
    kind: str = Field(description="A kind of figure: the name of a file of report/figures that defines KIND.")
    title: str = Field(description="Heading above the figure.")
    caption: str = Field(description="What the figure shows and how to read it.")
    alt: str = Field(description="The figure in words, for readers who do not see it.")
    experiment: str | None = Field(None, description="Experiment whose launches `select` chooses from.")
    metric: str | None = Field(None, description="Metric of the launches that `select` chooses; none for kind passes.")
    base_evidence: Evidence | None = Field(
        None,
        description="Level of evidence of `against`, if it differs from that of `select`: a ratio is then how far two "
        "levels are apart.",
    )
    x: XAxis | None = Field(None, description="The x axis, for kinds that have one.")
    y: YAxis = Field(description="The y axis.")
    rows: str | None = Field(
        None, description="Field of the case that each row shows one value of, for kinds with rows."
    )
    published_at: dict[str, Any] = Field(
        {},
        description="Fields of the cases for which the published rows hold. Where launches of the figure have others, "
        "no row is drawn, and the caption says so.",
    )
    over: tuple[str, ...] = Field((), description="Conditions given as a range: the interval covers the whole range.")
    series: tuple[SeriesForm, ...] = Field((), description="What is drawn, for kinds that draw launches or claims.")
    of: dict[str, Any] = Field({}, description="What is computed and drawn, for kinds without series.")
    claims: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="Ids of claims that the figure shows; links to them follow it."
    )

    @model_validator(mode="after")
    def _selected_series_have_an_experiment(self) -> FigureForm:
        if any(series.select for series in self.series) and not self.experiment:
            raise ValueError(f"{self.id}: series that 'select' need 'experiment'")
        if self.base_evidence and any(series.against is None for series in self.series):
            raise ValueError(f"{self.id}: 'base_evidence' is that of 'against', which every series needs then")
        return self
