"""Tunes the arms of an experiment: runs every arm at every point of the grid that its `tune` names, the same number of
launches each, and writes the suite's tuned.yaml. Finished launches are not run again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import (
    open_store,
    print_table,
    results_argument,
    size_argument,
    size_of,
    suites_argument,
)

if TYPE_CHECKING:
    from scaleproof.claims.metric import Metric
    from scaleproof.spec.tuned import TunedSize
    from scaleproof.spec.tuning import Tuning

HELP = "tune every arm of an experiment on its grid, and write the suite's tuned.yaml"
EXAMPLE = "scaleproof tune easgd2015 --size smoke --dry-run"
HEAD = """\
# Written by `scaleproof tune {suite}`: the value of the metric in every launch of every grid point.
# What is chosen stands over the fields of an arm, and below the `set` of a row.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("suite", metavar="SUITE", help="a suite's name, or the path of its folder")
    parser.add_argument(
        "--experiment", metavar="NAME", help="one experiment (default: every one with `tune` and this size)"
    )
    size_argument(parser)
    results_argument(parser)
    suites_argument(parser)
    parser.add_argument("--dry-run", action="store_true", help="list arms, points and launches; write nothing")


def main(options: argparse.Namespace) -> int:
    """Run what is missing of each experiment, and write what was chosen."""
    from scaleproof.spec.tuning import tunings

    found = tunings(options.suite, options.suites, options.experiment, size_of(options))
    metrics = [_metric(tuning) for tuning in found]  # an unknown one is an error before the first launch
    if options.dry_run:
        print_table(
            ["experiment", "arm", "at", "points", "launches of each"],
            [row for tuning in found for row in _planned(tuning)],
        )
        return 0
    codes = [_tune(tuning, metric, options.results) for tuning, metric in zip(found, metrics, strict=True)]
    return max(codes)


def _metric(tuning: Tuning) -> Metric:
    from scaleproof.claims.suite_metrics import suite_metrics
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.registry import nearest

    known = {
        name: metric
        for name, metric in suite_metrics(tuning.folder).items()
        if metric.launch is not None and metric.direction is not None
    }
    if tuning.form.metric not in known:
        advice = nearest(tuning.form.metric, list(known))
        raise SpecError(f"{tuning.place}: {tuning.form.metric!r} gives no better launch; {advice}")
    return known[tuning.form.metric]


def _planned(tuning: Tuning) -> list[list[str]]:
    return [
        [tuning.experiment, cell.arm, _fields(cell.at), str(len(cell.points)), str(tuning.form.launches)]
        for cell in tuning.cells
    ]


def _tune(tuning: Tuning, metric: Metric, results: Path) -> int:
    """1 where a launch has no record: nothing is written then, since all arms must have had the same budget."""
    from scaleproof.claims.grid_choice import tuned_size
    from scaleproof.core.launch_spec import STALL_S
    from scaleproof.launch.progress import progress_on_terminal
    from scaleproof.launch.supervisor import run_plan
    from scaleproof.simulate.predict import Predictor

    title = f"tune {tuning.suite} {tuning.experiment} {tuning.size}"
    outcome = run_plan(
        tuning.launches,
        results,
        size=tuning.size,
        deadline_s=tuning.deadline_s,
        progress=progress_on_terminal(title),
        stall_s=tuning.stall_s or STALL_S,
        simulator=Predictor(results),
        timed=tuning.timed,
    )
    print(
        f"{title}: {outcome.planned} launches: {outcome.skipped} finished before, {outcome.completed} done", flush=True
    )
    if not outcome.complete:
        without = outcome.planned - outcome.skipped - outcome.completed
        print(f"{title}: {without} launches without a result: nothing is written; start again when they can run")
        return outcome.exit_code
    tuned = tuned_size(tuning, open_store(results), metric)
    _write(tuning, tuned)
    _show(tuning, tuned)
    return 0


def _write(tuning: Tuning, tuned: TunedSize) -> None:
    """Into the suite's tuned.yaml, beside what it has of other experiments and sizes."""
    import yaml

    from scaleproof.core.atomic_write import write_text
    from scaleproof.spec.suite_form import SIZES
    from scaleproof.spec.tuned import FILE, TunedFile, read_tuned

    before = read_tuned(tuning.folder) or TunedFile(experiments={})
    sizes: dict[Any, TunedSize] = {**before.experiments.get(tuning.experiment, {}), tuning.size: tuned}
    ordered = {name: sizes[name] for name in SIZES if name in sizes}
    experiments = dict(sorted({**before.experiments, tuning.experiment: ordered}.items()))
    values = TunedFile(experiments=experiments).model_dump(exclude_defaults=True)
    text = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
    write_text(tuning.folder / FILE, HEAD.format(suite=tuning.suite) + text)


def _show(tuning: Tuning, tuned: TunedSize) -> None:
    from scaleproof.spec.locate import shown
    from scaleproof.spec.tuned import FILE

    print_table(
        ["arm", "at", "chosen", "at an edge of its grid"],
        [[cell.arm, _fields(cell.at), _fields(cell.chosen), ", ".join(cell.edge)] for cell in tuned.cells],
    )
    for cell in tuned.cells:
        if all(isinstance(value, str) for point in cell.points for value in point.values):
            print(f"arm {cell.arm}: no launch has a number, and the first point is taken")
    print(shown(tuning.folder / FILE))


def _fields(fields: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items())
