"""Measures noise floors and bounds of this machine, or noise floors of several nodes together, by interleaved launches
of identical arms. With SUITE: only the floors that the claims of the suite need and this machine does not have yet,
from the launches that the suite has made, else by more launches. Leave the machines alone meanwhile."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from scaleproof.commands.common import (
    allocation_arguments,
    nodes_of_run,
    print_table,
    results_argument,
    size_argument,
    size_of,
    suites_argument,
)

if TYPE_CHECKING:
    from scaleproof.calibrate.missing_calibration import MissingCalibration
    from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
    from scaleproof.record.machine import Bound, Floor, MachineProfile

HELP = "this machine's noise floors and bounds; about 3 minutes"
EXAMPLE = """scaleproof calibrate --minutes 3
  scaleproof calibrate das2016 --size smoke --dry-run     which floors need launches, and how long they take"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument(
        "suite", metavar="SUITE", nargs="?", help="get the missing floors that this suite's claims need"
    )
    size_argument(parser)
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
    suites_argument(parser)
    allocation_arguments(parser)


def main(options: argparse.Namespace) -> int:
    """Measure, store, print."""
    if options.suite and not options.show:
        return _missing(options)
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


def _missing(options: argparse.Namespace) -> int:
    """Get what the claims of a suite lack, or list it; 0 if every launch has a good record, else 1."""
    from scaleproof.calibrate.missing_calibration import calibrate_missing
    from scaleproof.launch.progress import progress_on_terminal
    from scaleproof.spec.units import format_seconds

    allocated = nodes_of_run(options)
    calibration, seconds = missing_of_suite(options, allocated)
    if not calibration.missing:
        print(f"the launches of {options.suite} decide its claims: no noise floor has to be measured at this size")
        return 0
    print_missing(calibration)
    print(f"{len(calibration.launches())} launches, about {format_seconds(seconds)}", flush=True)
    if options.dry_run:
        return 0
    title = f"{options.suite} floors"
    profile, outcome = calibrate_missing(calibration, options.results, progress_on_terminal(title), allocated)
    print_profile(profile)
    _print_still_missing(options, outcome.failed, allocated)
    return 0 if outcome.complete else 1


def _print_still_missing(options: argparse.Namespace, failed: int, allocated: AllocatedNodes | None) -> None:
    """The floors that the launches did not give, and where to look why. `failed`: launches without a good record."""
    calibration, _ = missing_of_suite(options, allocated)
    if calibration.missing:
        print_missing(calibration)
        print("claims that need them stay inconclusive")
    if failed:
        print(f"{failed} launches failed; see why: scaleproof results list suite:{options.suite} status:failed")


def missing_of_suite(
    options: argparse.Namespace, allocated: AllocatedNodes | None = None
) -> tuple[MissingCalibration, float]:
    """The floors that a suite's claims lack on this machine, or on the nodes `allocated`, and how long they take, s.
    What the suite's launches give is in the profile then, and with --dry-run counts as if it were."""
    from scaleproof.calibrate.floors_of_plan import made_launches, seconds_of_earlier, to_measure, with_floors_of_plan
    from scaleproof.calibrate.missing_calibration import missing_calibration, profile_or_new
    from scaleproof.calibrate.needed_floors import missing_floors
    from scaleproof.record.digest import machine_id
    from scaleproof.record.machine import write_profile
    from scaleproof.record.store import Store
    from scaleproof.spec.estimate import Earlier
    from scaleproof.spec.suite import load_suite

    suite, size = load_suite(options.suite, options.suites), size_of(options)
    profile = profile_or_new(options.results, machine_id() if allocated is None else allocated.machine)
    missing = missing_floors(suite, size, profile, allocated)
    earlier = Earlier()
    if missing and (options.results / "runs").is_dir():
        store = Store(options.results)
        earlier = seconds_of_earlier(store, {needed.case.case_id for needed in missing})
        made = made_launches(suite, size, missing, store, allocated)
        profile = with_floors_of_plan(profile, suite, missing, made, earlier, store, allocated)
        missing = to_measure(missing, made, profile, suite, size, store)
        if not options.dry_run:
            write_profile(options.results, profile)
    calibration = missing_calibration(suite, size, missing, earlier)
    return calibration, calibration.seconds(earlier)


def print_missing(calibration: MissingCalibration) -> None:
    """A row per kind of launch that has no floor, with the metrics and the claims that need one."""
    rows = []
    for kind in calibration.kinds:
        of_kind = [needed for needed in calibration.missing if needed.kind == kind]
        claims = sorted({needed.claim for needed in of_kind})
        metrics = ", ".join(sorted({needed.metric.name for needed in of_kind}))
        rows.append([str(kind), metrics, str(len(claims)), claims[0]])
    title = f"{calibration.suite.name} {calibration.size}: kinds of launches without a noise floor"
    print_table(["kind of launch", "metrics", "claims", "such as"], rows, title)


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
    if stale := sum(floor.code != code_digest() for floor in profile.floors):
        of_all = f"{stale} of {len(profile.floors)} floors"
        print(f"the measuring code has changed since {of_all} were measured; calibrate again before you compare")
    return 0


def print_profile(profile: MachineProfile) -> None:
    """Print two tables: noise floors and resolution (the smallest slowdown that 95 of 100 comparisons find) by kind of
    launch, and bounds."""
    title = f"machine {profile.machine}, measured {profile.measured_at}: noise floors and resolution"
    columns = [
        "metric",
        "kind of launch",
        "message",
        "noise floor",
        "spread of a launch",
        "resolution, 6 launches an arm",
        "10 launches",
    ]
    ordered = sorted(profile.floors, key=lambda floor: (str(floor.kind), floor.metric, floor.nbytes or 0))
    print_table(columns, [_floor_row(floor) for floor in ordered], title)
    if profile.bounds:
        print_table(
            ["bound", "size", "rate", "slowest to fastest", "launches", "taken"],
            [_bound_row(bound) for bound in profile.bounds],
            "upper bounds",
        )


def _floor_row(floor: Floor) -> list[str]:
    from scaleproof.spec.units import format_bytes
    from scaleproof.stats.compare_arms import detectable

    differences = [f"from {detectable(floor.spread, launches, True, floor=floor.share):.1%}" for launches in (6, 10)]
    return [
        floor.metric,
        str(floor.kind),
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
