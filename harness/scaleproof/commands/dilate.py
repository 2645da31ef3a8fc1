"""Computes the dilation and shrink with which this machine carries the traffic of a suite's emulated clusters.

Links of fabric netns are as fast as a case says, and the cores of this machine must move their bytes. With
`dilation: D`, replayed compute and delays last D times longer and links are D times slower. With `shrink: S`, tensors
and links are S times smaller. Metrics undo both. The values follow from the case, its cluster and the capacity of this
machine, which is measured once, in about two minutes (leave the machine alone meanwhile). Write both numbers into the
suite: they are part of the case. Exit code 1: some case, as it is written, needs more than the machine carries."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NamedTuple

from scaleproof.commands.common import print_table, results_argument, size_argument, size_of, suites_argument

if TYPE_CHECKING:
    from pathlib import Path

    from scaleproof.calibrate.cluster_capacity import Capacity
    from scaleproof.spec.case import TrainCase
    from scaleproof.workloads.profile import Spread

HELP = "which dilation and shrink this machine needs to carry a suite's emulated clusters"
EXAMPLE = """scaleproof dilate validation --size smoke
  scaleproof dilate --measure                          only measure again what this machine carries"""
_CASE_COLUMNS = ("experiment", "arm", "ranks", "network", "link", "dilation", "shrink")
_NEED_COLUMNS = (
    "links busy",
    "needs",
    "messages",
    "carried",
    "least dilation",
    "shrink",
    "needs",
)
_OFFER_COLUMNS = 4
"""Number of the first _NEED_COLUMNS, which are about the case as it is written."""


class _Rate(NamedTuple):
    """A measured rate of this machine, and the factor and unit in which it is shown."""

    name: str
    spread: Spread
    scale: float
    unit: str


class _Need(NamedTuple):
    """What a case needs of this machine, as cells of _NEED_COLUMNS; `is_carried`: as the case is written."""

    is_carried: bool
    cells: list[str]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("suite", metavar="SUITE", nargs="?", help="a suite's name, or the path of its folder")
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", nargs="?", help="one experiment (default: every one that has this size)"
    )
    size_argument(parser)
    parser.add_argument("--measure", action="store_true", help="measure again what this machine carries")
    results_argument(parser)
    suites_argument(parser)


def main(options: argparse.Namespace) -> int:
    """0 if this machine carries every case as it is written, else 1."""
    from scaleproof.calibrate.cluster_capacity import measure_capacity, read_capacity
    from scaleproof.launch.progress import progress_on_terminal
    from scaleproof.spec.errors import SpecError

    if options.suite is None and not options.measure:
        raise SpecError("scaleproof dilate: give SUITE, or --measure; see 'scaleproof dilate --help'")
    cases = _cases(options) if options.suite else []
    capacity = None if options.measure else read_capacity(options.results)
    if capacity is None:
        capacity = measure_capacity(options.results, progress_on_terminal("what this machine carries"))
    _show(capacity)
    return _advise(cases, capacity, options.results / "machines" / capacity.machine) if options.suite else 0


def _cases(options: argparse.Namespace) -> list[TrainCase]:
    from scaleproof.calibrate.needed_dilation import concerns
    from scaleproof.spec.suite import load_suite

    suite, size = load_suite(options.suite, options.suites), size_of(options)
    names = (
        [options.experiment]
        if options.experiment
        else [name for name, experiment in suite.experiments.items() if size in experiment.sizes]
    )
    return [case for name in names for case in suite.experiment(name).size(size).cases if concerns(case)]


def _show(capacity: Capacity) -> None:
    from scaleproof.record.digest import code_digest

    rows = []
    for name, spread, scale, unit in _rates(capacity):
        interval = (
            ""
            if spread.low is None or spread.high is None
            else f"{spread.low / scale:.3g} to {spread.high / scale:.3g}"
        )
        rows.append([name, f"{spread.median / scale:.3g} {unit}", interval, str(spread.n)])
    print_table(
        ["all nodes together", "rate", "95 % interval", "launches"],
        rows,
        f"machine {capacity.machine} carries, measured {capacity.measured_at}",
    )
    print(
        capacity.taken
        + ("" if capacity.code == code_digest() else "; the measuring code has changed since: --measure repeats it")
        + "\n"
    )


def _rates(capacity: Capacity) -> list[_Rate]:
    return [
        _Rate("bytes in bulk", capacity.bulk, 1e6, "MB/s"),
        _Rate("bytes over slow links", capacity.paced, 1e6, "MB/s"),
        _Rate("messages", capacity.messages, 1.0, "/s"),
    ]


def _advise(cases: list[TrainCase], capacity: Capacity, machine: Path) -> int:
    """Print what each case needs; 0 if the machine carries all of them as they are written, else 1."""
    from scaleproof.calibrate.needed_dilation import LOAD, MESSAGES, SHARE

    needs = [_need(case, capacity, machine) for case in cases]
    allowed = (
        f"{LOAD:.0%} may be needed while links are busy, {MESSAGES:.0%} for messages, or {SHARE:.0%} of a whole step"
    )
    print_table(
        [*_CASE_COLUMNS, *_NEED_COLUMNS],
        [[*_case_cells(case), *need.cells] for case, need in zip(cases, needs, strict=True)],
        f"shares of what this machine carries over slow links: {allowed}",
    )
    if not cases:
        print("no case of these replays compute on fabric netns", file=sys.stderr)
    return 0 if all(need.is_carried for need in needs) else 1


def _case_cells(case: TrainCase) -> list[str]:
    workload = case.workload_options
    side = "" if workload.image_side is None else f" {workload.image_side}"
    width = "" if workload.width == 1 else f" x{workload.width:g}"
    return [
        case.experiment,
        case.arm,
        str(case.ranks),
        case.workload + side + width,
        str(case.value("fabric.cluster") or f"{case.value('fabric.link_mbit') or 0:g} Mbit/s"),
        f"{case.dilation:g}",
        f"{case.shrink:g}",
    ]


def _need(case: TrainCase, capacity: Capacity, machine: Path) -> _Need:
    from scaleproof.calibrate.needed_dilation import choose, load_of, offer_of
    from scaleproof.spec.errors import SpecError

    cells: list[str] = []
    is_carried = False
    try:
        offer = offer_of(case, machine)
        load = load_of(offer, capacity, case.dilation, case.shrink)
        is_carried = load.carried
        cells += [f"{offer.busy:.0%}", f"{load.load:.0%}", f"{load.messages:.1%}", "yes" if is_carried else "no"]
        least = choose(case, offer, capacity)
    except SpecError as error:
        unknown = [""] * (_OFFER_COLUMNS - len(cells))
        return _Need(False, [*cells, *unknown, "none", "none", str(error)])
    return _Need(is_carried, [*cells, f"{least.dilation:g}", f"{least.shrink:g}", f"{least.load:.0%}"])
