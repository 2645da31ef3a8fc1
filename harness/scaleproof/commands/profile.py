"""Measures how long each layer of a network takes on this machine, forward and backward, for cases that replay or
simulate its compute.

What is measured: the network at one batch (samples of one rank), in fresh processes that run one after the other with
nothing beside them. The file goes to results/machines/<id>/profiles/; cases with `compute: replay` or `fabric:
simulated` find it there. Leave the machine alone meanwhile."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from scaleproof.commands.common import print_table, results_argument, size_argument, size_of, suites_argument

if TYPE_CHECKING:
    from scaleproof.calibrate.measured_profiles import ProfileRequest
    from scaleproof.workloads.profile import LayerTimes, Profile, Spread

HELP = "each layer's forward and backward time on this machine, for replay and simulation"
EXAMPLE = """scaleproof profile --workload vgg_a --image-side 64 --width 0.5 --batch 8
  scaleproof profile validation --size smoke           all missing profiles of this suite's cases
  scaleproof profile --show                            all profiles of this machine"""
SHOWN = 0.01
"""Layers with less of the step than this are one row."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    parser.add_argument(
        "suite", metavar="SUITE", nargs="?", help="measure what this suite's cases replay, unless it is there already"
    )
    parser.add_argument("experiment", metavar="EXPERIMENT", nargs="?", help="one experiment of it (default: all)")
    size_argument(parser)
    parser.add_argument("--workload", metavar="NAME", help="a network (`scaleproof doctor` lists them)")
    parser.add_argument("--image-side", type=int, metavar="N", help="pixels of a side, where it is reduced")
    parser.add_argument(
        "--width", type=float, default=1.0, metavar="F", help="factor of the hidden features (default: 1)"
    )
    parser.add_argument("--batch", type=int, metavar="N", help="samples of one rank: the minibatch over the ranks")
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="compute threads, as a case's threads_per_rank (default: 1)"
    )
    parser.add_argument(
        "--framework",
        default="torch",
        metavar="NAME",
        help="torch (TensorFlow's compiled backward pass shows no layers)",
    )
    parser.add_argument(
        "--launches",
        type=int,
        default=6,
        metavar="N",
        help="fresh processes (default: 6, the fewest that give an interval)",
    )
    parser.add_argument("--again", action="store_true", help="with SUITE: measure also what is there already")
    parser.add_argument("--show", action="store_true", help="list the profiles of this machine; measure nothing")
    results_argument(parser)
    suites_argument(parser)


def main(given: argparse.Namespace) -> int:
    """Measure, store, print."""
    from scaleproof.calibrate.measured_profiles import measure_profile
    from scaleproof.record.digest import machine_id
    from scaleproof.workloads.profile import write

    folder = given.results / "machines" / machine_id()
    if given.show:
        return _show(given, machine_id())
    wanted = _of_suite(given) if given.suite else [_one(given)]
    for one in wanted:
        profile = measure_profile(
            one, given.launches, lambda text: print(f"profile: {text}", file=sys.stderr, flush=True)
        )
        print_profile(profile)
        print(write(profile, folder))
    if not wanted:
        print("every profile that these cases replay is there; --again measures anew")
    return 0


def _one(given: argparse.Namespace) -> ProfileRequest:
    from scaleproof.calibrate.measured_profiles import ProfileRequest
    from scaleproof.spec.errors import SpecError
    from scaleproof.workloads.profile import FRAMEWORK

    if given.workload is None or given.batch is None:
        raise SpecError("scaleproof profile: give SUITE, or --workload and --batch; see 'scaleproof profile --help'")
    if given.framework != FRAMEWORK:
        raise SpecError(
            f"scaleproof profile: layers are timed in {FRAMEWORK!r} only; {given.framework!r} does not show them "
            "one by one"
        )
    if min(given.batch, given.threads, given.launches) < 1 or not 0 < given.width <= 1:
        raise SpecError(
            "scaleproof profile: --batch, --threads and --launches are at least 1, --width is above 0 and at most 1"
        )
    wanted = ProfileRequest(given.workload, given.image_side, given.width, given.batch, given.threads)
    wanted.network()
    return wanted


def _of_suite(given: argparse.Namespace) -> list[ProfileRequest]:
    """What the cases of a size replay, each once; what is there already only with --again."""
    from scaleproof.calibrate.measured_profiles import request_of
    from scaleproof.record.digest import machine_id
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.suite import load_suite
    from scaleproof.workloads.profile import FRAMEWORK, profile_of, replayed

    suite, size = load_suite(given.suite, given.suites), size_of(given)
    if given.workload is not None:
        raise SpecError("scaleproof profile: SUITE names the networks; leave out --workload")
    names = (
        [given.experiment]
        if given.experiment
        else [name for name, found in suite.experiments.items() if size in found.sizes]
    )
    cases = [case for name in names for case in suite.experiment(name).size(size).cases]
    wanted: dict[ProfileRequest, None] = {}
    for case in cases:
        if not replayed(case) or case.compute_options.profile is not None or case.framework != FRAMEWORK:
            continue
        try:
            profile_of(case, given.results / "machines" / machine_id())
        except SpecError:
            wanted[request_of(case)] = None
        else:
            wanted |= {request_of(case): None} if given.again else {}
    return list(wanted)


def _show(given: argparse.Namespace, machine: str) -> int:
    """1 when there is none."""
    from scaleproof.workloads.profile import FOLDER, read

    paths = sorted((given.results / "machines" / machine / FOLDER).glob("*.json"))
    if not paths:
        print(f"no profile of machine {machine} in {given.results}; type `scaleproof profile --help`", file=sys.stderr)
        return 1
    rows = []
    for path in paths:
        found = read(path)
        times = [f"{seconds * 1e3:.4g}" for seconds in (found.forward_s, found.backward_s, found.update_s.median)]
        rows.append(
            [
                found.workload,
                _side(found),
                f"{found.width:g}",
                str(found.batch),
                found.framework,
                str(found.threads),
                *times,
                found.measured_at,
            ]
        )
    columns = [
        "workload",
        "image side",
        "width",
        "batch",
        "framework",
        "threads",
        "forward (ms)",
        "backward (ms)",
        "update (ms)",
        "measured",
    ]
    print_table(columns, rows, f"profiles of machine {machine}")
    return 0


def _side(profile: Profile) -> str:
    return "" if profile.image_side is None else str(profile.image_side)


def print_profile(profile: Profile) -> None:
    """A row for each layer that takes at least SHOWN of the step, the rest in one, and the sum."""
    side = "" if profile.image_side is None else f" at side {profile.image_side}"
    title = (
        f"machine {profile.node}: {profile.workload}{side}, width {profile.width:g}, batch {profile.batch}, "
        f"{profile.framework}"
    )
    large = [
        layer for layer in profile.layers if layer.forward_s.median + layer.backward_s.median >= SHOWN * profile.step_s
    ]
    small = [layer for layer in profile.layers if layer not in large]
    rows = [_row(layer, profile.batch) for layer in large]
    if small:
        forward, backward = (
            sum(times) * 1e3
            for times in zip(*((layer.forward_s.median, layer.backward_s.median) for layer in small), strict=True)
        )
        rows.append([f"{len(small)} smaller layers", "", f"{forward:.3g}", "", f"{backward:.3g}", "", "", ""])
    flop = 2 * sum(layer.mac for layer in profile.layers) * profile.batch
    total = [
        "whole network",
        f"{flop / 2e6 / profile.batch:.4g}",
        f"{profile.forward_s * 1e3:.4g}",
        "",
        f"{profile.backward_s * 1e3:.4g}",
        "",
        "",
    ]
    rows.append([*total, _rate(flop, profile.forward_s)])
    update = profile.update_s
    rows.append(["update", "", f"{update.median * 1e3:.3g}", _interval(update), "", "", "", ""])
    columns = [
        "layer",
        "10^6 MAC a sample",
        "forward (ms)",
        "95 %",
        "backward (ms)",
        "95 %",
        "of it weights (ms)",
        "forward GFLOP/s",
    ]
    print_table(columns, rows, title)
    print(profile.taken)


def _row(layer: LayerTimes, batch: int) -> list[str]:
    forward, backward = layer.forward_s, layer.backward_s
    times = [
        f"{forward.median * 1e3:.3g}",
        _interval(forward),
        f"{backward.median * 1e3:.3g}",
        _interval(backward),
        f"{layer.weight_s.median * 1e3:.3g}",
    ]
    return [layer.name, f"{layer.mac / 1e6:.4g}", *times, _rate(2 * layer.mac * batch, forward.median)]


def _interval(found: Spread) -> str:
    return "" if found.low is None or found.high is None else f"{found.low * 1e3:.3g} to {found.high * 1e3:.3g}"


def _rate(flop: float, seconds: float) -> str:
    return f"{flop / seconds / 1e9:.3g}" if flop and seconds else ""
