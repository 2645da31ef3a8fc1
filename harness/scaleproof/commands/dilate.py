"""Says which dilation and shrink to write into a suite, so that this machine carries what its emulated clusters move.

Links of fabric netns are as fast as a case says; the cores of this machine must move their bytes. With `dilation: D`
replayed compute and delays last D times longer and links are D times slower; with `shrink: S` tensors and links are S
times smaller; metrics take both back. The choice follows from the case, its cluster and what this machine was measured
to carry (once, in about two minutes; leave it alone meanwhile): write the two numbers into the suite, where they are
part of the case. Exit code 1: some case as it is written offers more than the machine carries."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from scaleproof.commands.common import print_table, results_argument, size_argument, size_of, suites_argument

if TYPE_CHECKING:
    from pathlib import Path

    from scaleproof.calibrate.cluster_capacity import Capacity
    from scaleproof.spec.case import TrainCase
    from scaleproof.workloads.profile import Spread

HELP = "which dilation and shrink this machine needs to carry a suite's emulated clusters"
EXAMPLE = """scaleproof dilate validation --size smoke
  scaleproof dilate --measure                          only measure, anew, what this machine carries"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    parser.add_argument("suite", metavar="SUITE", nargs="?", help="a suite's name, or the path of its folder")
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", nargs="?", help="one experiment (default: every one that has this size)"
    )
    size_argument(parser)
    parser.add_argument("--measure", action="store_true", help="measure anew what this machine carries")
    results_argument(parser)
    suites_argument(parser)


def main(given: argparse.Namespace) -> int:
    """0 when every case is carried as it is written, else 1."""
    from scaleproof.calibrate.cluster_capacity import measure_capacity, read_capacity
    from scaleproof.launch.progress import progress_on_terminal
    from scaleproof.spec.errors import SpecError

    if given.suite is None and not given.measure:
        raise SpecError("scaleproof dilate: give SUITE, or --measure; see 'scaleproof dilate --help'")
    cases = _cases(given) if given.suite else []
    capacity = None if given.measure else read_capacity(given.results)
    if capacity is None:
        capacity = measure_capacity(given.results, progress_on_terminal("what this machine carries"))
    _show(capacity)
    return _advise(cases, capacity, given.results / "machines" / capacity.machine) if given.suite else 0


def _cases(given: argparse.Namespace) -> list[TrainCase]:
    from scaleproof.calibrate.needed_dilation import concerns
    from scaleproof.spec.suite import load_suite

    suite, size = load_suite(given.suite, given.suites), size_of(given)
    names = (
        [given.experiment]
        if given.experiment
        else [name for name, found in suite.experiments.items() if size in found.sizes]
    )
    return [case for name in names for case in suite.experiment(name).size(size).cases if concerns(case)]  # type: ignore[misc]


def _show(capacity: Capacity) -> None:
    from scaleproof.record.digest import code_digest

    rows = []
    for name, found, scale, unit in _rates(capacity):
        interval = (
            "" if found.low is None or found.high is None else f"{found.low / scale:.3g} to {found.high / scale:.3g}"
        )
        rows.append([name, f"{found.median / scale:.3g} {unit}", interval, str(found.n)])
    print_table(
        ["all nodes together", "rate", "95 % interval", "launches"],
        rows,
        f"machine {capacity.machine} carries, measured {capacity.measured_at}",
    )
    print(
        capacity.taken
        + ("" if capacity.code == code_digest() else "; the measuring code has changed since: --measure does it anew")
        + "\n"
    )


def _rates(capacity: Capacity) -> list[tuple[str, Spread, float, str]]:
    bulk, paced = ("bytes in bulk", capacity.bulk, 1e6, "MB/s"), ("bytes over slow links", capacity.paced, 1e6, "MB/s")
    return [bulk, paced, ("messages", capacity.messages, 1.0, "/s")]


def _advise(cases: list[TrainCase], capacity: Capacity, machine: Path) -> int:
    from scaleproof.calibrate.needed_dilation import LOAD, MESSAGES, SHARE, asked, choose, offer_of
    from scaleproof.spec.errors import SpecError

    rows, carried = [], True
    for case in cases:
        network = (
            case.workload
            + ("" if case.workload_options.image_side is None else f" {case.workload_options.image_side}")
            + ("" if case.workload_options.width == 1 else f" x{case.workload_options.width:g}")
        )
        row = [
            case.experiment,
            case.arm,
            str(case.ranks),
            network,
            str(case.value("fabric.cluster") or f"{case.value('fabric.link_mbit') or 0:g} Mbit/s"),
            f"{case.dilation:g}",
            f"{case.shrink:g}",
        ]
        try:
            offer = offer_of(case, machine)
            written = asked(offer, capacity, case.dilation, case.shrink)
            row += [
                f"{offer.busy:.0%}",
                f"{written.load:.0%}",
                f"{written.messages:.1%}",
                "yes" if written.carried else "no",
            ]
            carried &= written.carried
            least = choose(case, offer, capacity)
            row += [f"{least.dilation:g}", f"{least.shrink:g}", f"{least.load:.0%}"]
        except SpecError as why:
            carried = False
            row += [""] * (11 - len(row)) + ["none", "none", str(why)]
        rows.append(row)
    columns = [
        "experiment",
        "arm",
        "ranks",
        "network",
        "link",
        "dilation",
        "shrink",
        "links busy",
        "asks for",
        "messages",
        "carried",
        "least dilation",
        "shrink",
        "asks for",
    ]
    allowed = (
        f"{LOAD:.0%} may be asked for while links are busy, {MESSAGES:.0%} for messages, or {SHARE:.0%} of a whole step"
    )
    print_table(columns, rows, f"shares of what this machine carries over slow links: {allowed}")
    if not cases:
        print("no case of these replays compute on fabric netns", file=sys.stderr)
    return 0 if carried else 1
