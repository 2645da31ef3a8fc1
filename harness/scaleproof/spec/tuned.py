"""tuned.yaml of a suite: every value of the grids that `scaleproof tune` tried, with the metric of each launch, and
what was chosen for each arm (docs/tuning.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from scaleproof.spec import registry
from scaleproof.spec.case_layers import CaseLayers, every_key
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import Document, Key, read_document
from scaleproof.spec.messages import form_error
from scaleproof.spec.suite_form import SIZES, Fields, SizeName, TuneForm

FILE = "tuned.yaml"
SUFFIX = "-tune"
"""Of the experiment that launches of a tuning belong to: they are cases and seeds of their own."""
MOST_POINTS = 1000
"""Of a grid."""
Grid = Mapping[str, Sequence[Any]]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TunedPoint(_Form):
    """One grid point of an arm."""

    set: Fields = Field(description="Fields of the case.")
    case: str = Field(description="Id of its case.")
    values: list[float | str | None] = Field(
        description="The metric of each launch, in the order of seeds; words where it has no number, as `diverged at "
        "step 12`."
    )


class TunedCell(_Form):
    """An arm, at one combination of the values of the fields `by`."""

    arm: str = Field(description="The arm.")
    at: Fields = Field({}, description="Values of the fields `by`.")
    chosen: Fields = Field(description="The fields of the point whose median is best; of equal ones the first.")
    edge: list[str] = Field([], description="Fields whose chosen value is the least or the largest of its grid.")
    points: list[TunedPoint] = Field(description="All points of the grid.")


class TunedSize(_Form):
    """What one call of `scaleproof tune` wrote for an experiment at a size."""

    metric: str = Field(description="The metric that decides.")
    launches: PositiveInt = Field(description="Launches of each point.")
    evidence: str = Field(description="Level of evidence of the launches.")
    machine: str | None = Field(None, description="The machine, where times of a machine matter; null: none does.")
    commit: str | None = Field(description="Commit of the code that ran; with ` (changed)` where files had changes.")
    date: str = Field(description="Day of the last launch.")
    cells: list[TunedCell] = Field(description="Arms.")


class TunedFile(_Form):
    """The whole file."""

    experiments: dict[str, dict[SizeName, TunedSize]] = Field(description="By name and size.")


def read_tuned(folder: Path) -> TunedFile | None:
    """A suite's tuned.yaml; None where it has none. SpecError with its line for the first mistake."""
    if not (folder / FILE).exists():
        return None
    document = read_document(folder / FILE)
    try:
        return TunedFile.model_validate(document.data or {})
    except ValidationError as failed:
        raise form_error(document, (), TunedFile, failed) from None


def grid_points(grid: Grid) -> Iterator[Fields]:
    """All points, the last field fastest."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _count(grid: Grid) -> int:
    return math.prod(map(len, grid.values()))


def grid_of(form: TuneForm, arm: str) -> Grid:
    """The grid of an arm."""
    return form.arms.get(arm, form.grid)


def grid_path(form: TuneForm, experiment: str, arm: str) -> Key:
    """Where it stands."""
    return ("experiments", experiment, "tune", *(("arms", arm) if arm in form.arms else ("grid",)))


def check_tune(document: Document, experiment: str, form: TuneForm, arms: Collection[str]) -> None:
    """Raises SpecError for an unknown arm or field, and for an arm whose grid has another number of points."""
    path: Key = ("experiments", experiment, "tune")
    named: list[tuple[Key, str]] = [((*path, "arms", arm), arm) for arm in form.arms]
    named += [((*path, "fixed", index), arm) for index, arm in enumerate(form.fixed)]
    for key, arm in named:
        if arm not in arms:
            raise document.error(key, f"unknown arm {arm!r}; {registry.nearest(arm, list(arms))}")
    for index, field in enumerate(form.by):
        if field not in every_key():
            raise document.error(
                (*path, "by", index), f"unknown field {field!r}; {registry.nearest(field, sorted(every_key()))}"
            )
    budget = _count(form.grid)
    if budget > MOST_POINTS:
        raise document.error((*path, "grid"), f"{budget} points are too many; at most {MOST_POINTS}")
    for arm, grid in form.arms.items():
        if (count := _count(grid)) != budget:
            message = f"{count} points, and `grid` has {budget}: every arm gets the same budget"
            raise document.error((*path, "arms", arm), message)


def place(layers: CaseLayers, by: Sequence[str]) -> Fields:
    """Values of the fields `by`."""
    return {field: layers.values.get(field) for field in by}


def tuning_of(experiment: str) -> str | None:
    """The experiment that launches with this experiment's name tune; None: they are no tuning."""
    return experiment.removesuffix(SUFFIX) if experiment.endswith(SUFFIX) else None


@dataclass(frozen=True)
class Chosen:
    """The tuned values of one experiment, as a layer between an arm and the `set` of its rows."""

    document: Document
    suite: str
    experiment: str
    form: TuneForm
    sizes: Mapping[SizeName, TunedSize]

    def over_arm(self, layers: CaseLayers, arm: str, size: str, height: int) -> CaseLayers:
        """`layers` with the values chosen for an arm above the first `height` layers. Raises SpecError, with the
        command that helps, where there are none, or where the grid is another one since."""
        if arm in self.form.fixed:
            return layers
        cell = self._cell(arm, place(layers, self.form.by), size)
        return layers.between(cell.chosen, grid_path(self.form, self.experiment, arm), height)

    def _cell(self, arm: str, at: Fields, size: str) -> TunedCell:
        """Of this size, else of the largest one that has it."""
        largest_first = sorted(self.sizes, key=SIZES.index, reverse=True)
        for name in sorted(largest_first, key=lambda name: name != size):
            tuned = self.sizes[name]
            found = next((cell for cell in tuned.cells if (cell.arm, cell.at) == (arm, at)), None)
            if found is not None:
                self._check_current(found, tuned, name)
                return found
        where = "".join(f", {field} {value}" for field, value in at.items())
        raise self._error(f"nothing tuned yet for arm {arm!r}{where}", size)

    def _check_current(self, cell: TunedCell, tuned: TunedSize, size: str) -> None:
        same = (tuned.metric, tuned.launches) == (self.form.metric, self.form.launches)
        points = [point.set for point in cell.points]
        if not same or points != list(grid_points(grid_of(self.form, cell.arm))):
            raise self._error(f"{FILE} was written with another grid, metric or number of launches", size)

    def _error(self, message: str, size: str) -> SpecError:
        command = f"scaleproof tune {self.suite} --experiment {self.experiment} --size {size}"
        return self.document.error(("experiments", self.experiment, "tune"), f"{message}; type `{command}`")
