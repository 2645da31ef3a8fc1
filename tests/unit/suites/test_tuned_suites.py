"""Tuned values of the project's suites are those of the cases that the suites have now, and suites run with them."""

from __future__ import annotations

import shlex
import statistics
from pathlib import Path

import pytest

from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.cli import main
from scaleproof.commands import tune
from scaleproof.spec.suite import load_suite, read_suite
from scaleproof.spec.suite_form import SIZES
from scaleproof.spec.tuned import TunedCell, TunedFile, TunedSize, read_tuned
from scaleproof.spec.tuning import tunings
from scaleproof.stats.never import worst

SUITES = Path(__file__).parents[3] / "suites"
TUNED = sorted(folder.name for folder in SUITES.iterdir() if (folder / "tuned.yaml").exists())
RATES_ARE_ARMS = {("easgd2015", "training"), ("jin2016", "step_size"), ("ho2018", "grid")}
"""Experiments that compare learning rates: the paper's, or those of a grid."""


def kept(suite: str) -> TunedFile:
    """Its tuned.yaml."""
    file = read_tuned(SUITES / suite)
    assert file is not None
    return file


def test_tuned_values_are_of_the_cases_that_the_suites_have_now() -> None:
    stale = [
        f"scaleproof tune {suite} --experiment {name} --size {size}"
        for suite in TUNED
        for name, sizes in kept(suite).experiments.items()
        for size, tuned in sizes.items()
        if tried(tuned) != planned(SUITES / suite, name, size)
    ]
    assert stale == [], "type these commands: the base, the arms or the grid have changed"


def tried(tuned: TunedSize) -> list[tuple[str, list[str]]]:
    """Arms with the ids of the cases that were run."""
    return [(cell.arm, [point.case for point in cell.points]) for cell in tuned.cells]


def planned(folder: Path, experiment: str, size: str) -> list[tuple[str, list[str]]]:
    """Arms with the ids of the cases that would be run now."""
    (tuning,) = tunings(str(folder), None, experiment, size)
    return [(cell.arm, [point.case.case_id for point in cell.points]) for cell in tuning.cells]


@pytest.mark.parametrize("suite", TUNED)
def test_all_arms_had_one_budget_and_the_best_median_was_chosen(suite: str) -> None:
    metrics = suite_metrics(SUITES / suite)
    for sizes in kept(suite).experiments.values():
        for tuned in sizes.values():
            cells, higher = tuned.cells, metrics[tuned.metric].direction == "higher"
            assert {len(cell.points) for cell in cells} == {len(cells[0].points)}
            assert {len(point.values) for cell in cells for point in cell.points} == {tuned.launches}
            assert [(cell.arm, cell.chosen) for cell in cells] == [(cell.arm, best(cell, higher)) for cell in cells]


def best(cell: TunedCell, higher: bool) -> dict[str, object]:
    """The fields of the point whose median is best; of equal ones the first."""
    scores = [
        statistics.median(value if isinstance(value, float) else worst(higher) for value in point.values)
        for point in cell.points
    ]
    return cell.points[scores.index((max if higher else min)(scores))].set


@pytest.mark.parametrize("suite", TUNED)
def test_every_case_of_a_tuned_arm_has_the_values_that_were_chosen(suite: str) -> None:
    forms, loaded = read_suite(SUITES / suite)[1].experiments, load_suite(SUITES / suite)
    for name, sizes in kept(suite).experiments.items():
        tune = forms[name].tune
        assert tune is not None, f"{suite}: {name} is in tuned.yaml, and has no `tune`"
        for size, experiment in loaded.experiments[name].sizes.items():
            order = [each for each in (size, *reversed(SIZES)) if each in sizes]
            cells = [cell for each in order for cell in sizes[each].cells]
            for case in experiment.cases:
                at = {field: case.value(field) for field in tune.by}
                found = (cell.chosen for cell in cells if (cell.arm, cell.at) == (case.arm, at))
                chosen = next(found) if case.arm not in tune.fixed else {}
                found_in = {field: within(case.value(field), value) for field, value in chosen.items()}
                assert found_in == chosen, (name, size, case.arm)


def within(values: object, chosen: object) -> object:
    """The value of a case; of options of a suite's own program those that were tuned."""
    if isinstance(values, dict) and isinstance(chosen, dict):
        return {option: values.get(option) for option in chosen}
    return values


def test_arms_of_an_experiment_that_is_not_tuned_learn_at_one_rate() -> None:
    suites = ("easgd2015", "ho2018", "jin2016", "psp2017", "teng2018")
    apart = {
        (suite, name)
        for suite in suites
        for name, experiment in load_suite(SUITES / suite).experiments.items()
        for size in experiment.sizes.values()
        if name not in (kept(suite).experiments if suite in TUNED else {})
        and len({case.value("learning_rate") for case in size.cases if case.program == "train"}) > 1
    }
    assert apart == RATES_ARE_ARMS


def test_the_example_in_the_help_names_a_suite_that_is_tuned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(tune.EXAMPLE)[1:]) == 0
    assert "launches of each" in capsys.readouterr().out
