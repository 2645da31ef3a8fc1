"""Measures noise floors and bounds of this machine, or noise floors of several nodes together, by interleaved launches
of identical arms. Leave the machines alone meanwhile."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from scaleproof.commands.common import allocation_arguments, nodes_of_run, print_table, results_argument

if TYPE_CHECKING:
    from scaleproof.record.machine import Bound, Floor, MachineProfile

HELP = "this machine's noise floors and bounds; about 3 minutes"
EXAMPLE = "scaleproof calibrate --minutes 3"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument(
        "--minutes", type=float, metavar="M", help="duration of the calibration, about (default: about 3)"
    )
    effort.add_argument(
        "--comparisons", type=int, metavar="N", help="launches for N comparisons of 6 launches an arm (default: 5)"
    )
    parser.add_argument("--dry-run", action="store_true", help="list the launches and an estimate; write nothing")
    parser.add_argument("--show", action="store_true", help="print the results for this machine; measure nothing")
    results_argument(parser)
    allocation_arguments(parser)


def main(options: argparse.Namespace) -> int:
    """Measure, store, print."""
    from scaleproof.calibrate.calibration_run import COMPARISONS, comparisons_within

    comparisons = COMPARISONS if options.comparisons is None else options.comparisons
    if options.minutes is not None:
        comparisons = comparisons_within(options.minutes)
    if comparisons < 1 or (options.minutes is not None and options.minutes <= 0):
        from scaleproof.spec.errors import SpecError

        raise SpecError("scaleproof calibrate: a calibration takes at least one comparison")
    if options.show:
        return _show(options)
    return _dry_run(options, comparisons) if options.dry_run else _measure(options, comparisons)


def _measure(options: argparse.Namespace, comparisons: int) -> int:
    """Measure; 0 if every launch has a good record, else 1."""
    from scaleproof.calibrate.calibration_run import calibrate
    from scaleproof.launch.progress import progress_on_terminal

    def print_progress(message: str) -> None:
        print(f"calibrate: {message}", file=sys.stderr, flush=True)

    profile, outcome = calibrate(
        options.results, comparisons, progress_on_terminal("calibrate"), print_progress, nodes_of_run(options)
    )
    print_profile(profile)
    print(options.results / "machines" / profile.machine / "profile.json")
    return 0 if outcome.complete else 1


def _dry_run(options: argparse.Namespace, comparisons: int) -> int:
    from scaleproof.calibrate.calibration_run import SIZE, plans, suite
    from scaleproof.commands.dry_run import dry_run

    return dry_run(suite(), plans(comparisons), SIZE, options.results)


def _show(options: argparse.Namespace) -> int:
    """Print the stored profile; 1 if this machine was never calibrated."""
    from scaleproof.record.digest import code_digest, machine_id
    from scaleproof.record.machine import read_profile

    allocated = nodes_of_run(options)
    machine = machine_id() if allocated is None else allocated.machine
    profile = read_profile(options.results, machine)
    if profile is None:
        print(f"machine {machine} is not calibrated in {options.results}; type `scaleproof calibrate`", file=sys.stderr)
        return 1
    print_profile(profile)
    if profile.code != code_digest():
        print("the measuring code has changed since; calibrate again before you compare")
    return 0


def print_profile(profile: MachineProfile) -> None:
    """Print two tables: noise floors with the differences that comparisons can detect, and bounds."""
    title = f"machine {profile.machine}, measured {profile.measured_at}: noise floors"
    columns = [
        "metric",
        "program",
        "message",
        "noise floor",
        "spread of a launch",
        "found with 6 launches an arm",
        "with 10",
    ]
    print_table(columns, [_floor_row(floor) for floor in profile.floors], title)
    if profile.bounds:
        print_table(
            ["bound", "size", "rate", "95 % interval", "launches", "taken"],
            [_bound_row(bound) for bound in profile.bounds],
            "upper bounds",
        )


def _floor_row(floor: Floor) -> list[str]:
    from scaleproof.spec.units import format_bytes
    from scaleproof.stats.compare_arms import detectable

    differences = [f"from {detectable(floor.spread, launches, True, floor=floor.share):.1%}" for launches in (6, 10)]
    return [
        floor.metric,
        floor.program,
        "" if floor.nbytes is None else format_bytes(floor.nbytes),
        f"{floor.share:.1%}",
        f"{floor.spread:.1%}",
        *differences,
    ]


def _bound_row(bound: Bound) -> list[str]:
    from scaleproof.spec.units import format_bytes

    unit = "GFLOP/s" if bound.unit == "FLOP/s" else "GB/s"
    interval = (
        f"{bound.low / 1e9:.3g} to {bound.high / 1e9:.3g}" if bound.low is not None and bound.high is not None else ""
    )
    size = "" if bound.nbytes is None else format_bytes(bound.nbytes)
    return [bound.name, size, f"{bound.value / 1e9:.3g} {unit}", interval, str(bound.n), bound.taken]
