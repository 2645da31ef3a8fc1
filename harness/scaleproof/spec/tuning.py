"""What `scaleproof tune` runs: every arm of an experiment at every point of its grid, with the same budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase
from scaleproof.spec.case_layers import CaseLayers
from scaleproof.spec.errors import SpecError
from scaleproof.spec.experiment import SweptLayers, resolved_case, swept
from scaleproof.spec.locate import Document
from scaleproof.spec.plan import PlannedLaunch, tuning_seed
from scaleproof.spec.programs import programs_folder
from scaleproof.spec.suite import read_suite
from scaleproof.spec.suite_form import ExperimentForm, Fields, SuiteForm, TuneForm
from scaleproof.spec.tuned import SUFFIX, check_tune, grid_of, grid_path, grid_points, place


@dataclass(frozen=True)
class Point:
    """A point of a grid: the fields that it sets, and the case that they give."""

    fields: Fields
    case: AnyCase


@dataclass
class Cell:
    """An arm, at one combination of the values of the fields `by`."""

    arm: str
    at: Fields
    points: list[Point]


@dataclass(frozen=True)
class Tuning:
    """Of one experiment at one size."""

    suite: str
    folder: Path
    experiment: str
    size: str
    form: TuneForm
    place: str
    """File, line and key of the metric."""
    deadline_s: float
    stall_s: float | None
    timed: bool
    cells: tuple[Cell, ...]

    @property
    def launches(self) -> list[PlannedLaunch]:
        """All launches, interleaved: block k has launch k of every point, all with one seed."""
        cases = {point.case.case_id: point.case for cell in self.cells for point in cell.points}
        programs = str(programs_folder(self.folder).absolute())
        return [
            PlannedLaunch(
                case, index, tuning_seed(self.suite, self.experiment, index), index * len(cases) + number, programs
            )
            for index in range(self.form.launches)
            for number, case in enumerate(cases.values())
        ]


def tunings(name_or_path: str, suites: Path | None, experiment: str | None, size: str) -> list[Tuning]:
    """The tunings of a suite at a size, or of one experiment; raises SpecError where there are none."""
    document, form = read_suite(name_or_path, suites)
    return [_tuning(document, form, name, size) for name in _names(document, form, experiment, size)]


def _names(document: Document, form: SuiteForm, experiment: str | None, size: str) -> list[str]:
    tuned = [name for name, each in form.experiments.items() if each.tune is not None]
    if experiment is not None and experiment not in form.experiments:
        advice = registry.nearest(experiment, tuned or list(form.experiments))
        raise SpecError(f"suite {form.suite!r} has no experiment {experiment!r}; {advice}")
    chosen = tuned if experiment is None else [name for name in tuned if name == experiment]
    if not chosen:
        raise document.error(
            ("experiments", experiment) if experiment else ("experiments",), "has no `tune`: nothing is tuned"
        )
    sized = [name for name in chosen if size in form.experiments[name].sizes]
    if not sized:
        sizes: list[str] = [each for name in chosen for each in form.experiments[name].sizes]
        raise SpecError(f"no experiment with `tune` has size {size!r}; {registry.nearest(size, sizes)}")
    return sized


def _tuning(document: Document, suite: SuiteForm, name: str, size: str) -> Tuning:
    form = suite.experiments[name]
    assert form.tune is not None
    check_tune(document, name, form.tune, form.arms)
    size_form = form.sizes[size]  # type: ignore[index]
    return Tuning(
        suite.suite,
        document.file.parent,
        name,
        size,
        form.tune,
        document.place(("experiments", name, "tune", "metric")),
        size_form.deadline_s or form.deadline_s,
        size_form.stall_s or form.stall_s,
        form.timed,
        tuple(_cells(document, suite.suite, name, form, form.tune, size)),
    )


def _cells(
    document: Document, suite: str, name: str, form: ExperimentForm, tune: TuneForm, size: str
) -> Iterator[Cell]:
    """A cell for each arm and combination of the values of `by`."""
    path = ("experiments", name)
    base = CaseLayers(document).over(form.base, (*path, "base"))
    cells: dict[str, Cell] = {}
    for each in swept(base, path, form, size):
        if each.arm in tune.fixed:
            continue
        layers = each.layers.over(tune.set, (*path, "tune", "set"))
        at = place(layers, tune.by)
        points = list(_points(layers, each, (suite, name), tune))
        cell = cells.setdefault(f"{each.arm} {at}", Cell(each.arm, at, points))
        if [point.case for point in cell.points] != [point.case for point in points]:
            fields = _different(cell.points[0].case, points[0].case)
            raise document.error(
                (*path, "tune"),
                f"cases of arm {each.arm!r} differ in {fields}: name that in `by`, or give it one value in `set`",
            )
    yield from cells.values()


def _points(layers: CaseLayers, each: SweptLayers, names: tuple[str, str], tune: TuneForm) -> Iterator[Point]:
    suite, experiment = names
    for fields in grid_points(grid_of(tune, each.arm)):
        over = layers.over(fields, grid_path(tune, experiment, each.arm))
        case = resolved_case(over, (suite, experiment), each.arm, each.row_path)
        yield Point(fields, case.model_copy(update={"experiment": f"{experiment}{SUFFIX}"}))


def _different(first: AnyCase, second: AnyCase) -> str:
    """Fields in which two cases differ."""
    one, other = first.complete(), second.complete()
    return ", ".join(sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key)))
