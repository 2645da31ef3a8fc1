"""Measures how long each layer of a network takes on this machine, forward and backward, for cases that replay or
simulate its compute.

It measures the network at one batch (samples of one rank), in fresh processes, one after the other. The file goes to
results/machines/<id>/profiles/, where cases with `compute: replay` or `fabric: simulated` find it. With --device cuda
it measures a GPU, by CUDA events, and keeps the times with their environment as a node type,
results/node_types/NAME.json, for `scaleproof predict --profile NAME`, also on another machine that has the file. Leave
the machine alone meanwhile."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from scaleproof.commands.common import (
    CaseField,
    print_table,
    reduced_arguments,
    results_argument,
    size_argument,
    size_of,
    suites_argument,
)
from scaleproof.commands.profile_device import (
    check_device,
    device_arguments,
    measure_gpu,
    print_node_types,
    store_node_type,
)

if TYPE_CHECKING:
    from scaleproof.calibrate.measured_profiles import ProfileRequest
    from scaleproof.workloads.profile import LayerTimes, Profile, Spread

HELP = "each layer's forward and backward time on this machine, for replay and simulation"
EXAMPLE = """scaleproof profile --workload vgg_a --image-side 64 --width 0.5 --batch 8
  scaleproof profile validation --size smoke           all missing profiles of this suite's cases
  scaleproof profile --workload resnet50 --batch 128 --device cuda    a GPU, kept as a node type
  scaleproof profile --show                            all profiles of this machine, and node types"""
SMALL_SHARE = 0.01
"""Layers with less of the step than this have one row together."""
_LAYER_COLUMNS = (
    "layer",
    "10^6 MAC a sample",
    "forward (ms)",
    "95 %",
    "backward (ms)",
    "95 %",
    "of it weights (ms)",
    "forward GFLOP/s",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument(
        "suite", metavar="SUITE", nargs="?", help="measure the missing profiles that this suite's cases replay"
    )
    parser.add_argument("experiment", metavar="EXPERIMENT", nargs="?", help="one experiment of it (default: all)")
    size_argument(parser)
    parser.add_argument("--workload", metavar="NAME", help="a network (`scaleproof doctor` lists them)")
    reduced_arguments(parser)
    parser.add_argument("--batch", type=int, metavar="N", help="samples of one rank: the minibatch over the ranks")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help=CaseField("threads_per_rank"))
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
    device_arguments(parser)
    parser.add_argument("--again", action="store_true", help="with SUITE: measure existing profiles again")
    parser.add_argument("--show", action="store_true", help="list the profiles of this machine; measure nothing")
    results_argument(parser)
    suites_argument(parser)


def main(options: argparse.Namespace) -> int:
    """Measure, store, print."""
    from scaleproof.calibrate.measured_profiles import measure_profile
    from scaleproof.record.digest import machine_id
    from scaleproof.workloads.profile import write

    folder = options.results / "machines" / machine_id()
    check_device(options)
    if options.show:
        return _show(options, machine_id())
    if options.device != "cpu":
        measured = measure_gpu(options, _requested(options))
        print_profile(measured.profiles[0], f"node type {measured.name}")
        store_node_type(measured, options)
        return 0
    requests = _requested_by_suite(options) if options.suite else [_requested(options)]
    for request in requests:
        profile = measure_profile(
            request, options.launches, lambda text: print(f"profile: {text}", file=sys.stderr, flush=True)
        )
        print_profile(profile, f"machine {profile.node}")
        print(write(profile, folder))
    if not requests:
        print("every profile that these cases replay exists; --again measures them again")
    return 0


def _requested(options: argparse.Namespace) -> ProfileRequest:
    from scaleproof.calibrate.measured_profiles import ProfileRequest
    from scaleproof.spec.errors import SpecError
    from scaleproof.workloads.profile import FRAMEWORK

    if options.workload is None or options.batch is None:
        raise SpecError("scaleproof profile: give SUITE, or --workload and --batch; see 'scaleproof profile --help'")
    if options.framework != FRAMEWORK:
        raise SpecError(
            f"scaleproof profile: layers are timed in {FRAMEWORK!r} only; {options.framework!r} does not show them "
            "one by one"
        )
    if min(options.batch, options.threads, options.launches) < 1 or not 0 < options.width <= 1:
        raise SpecError(
            "scaleproof profile: --batch, --threads and --launches are at least 1, --width is above 0 and at most 1"
        )
    request = ProfileRequest(options.workload, options.image_side, options.width, options.batch, options.threads)
    request.network()
    return request


def _requested_by_suite(options: argparse.Namespace) -> list[ProfileRequest]:
    """The profiles that the cases of a size replay, each once; existing ones only with --again."""
    from scaleproof.calibrate.measured_profiles import request_of
    from scaleproof.record.digest import machine_id
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.suite import load_suite
    from scaleproof.workloads.profile import FRAMEWORK, profile_of, replayed

    suite, size = load_suite(options.suite, options.suites), size_of(options)
    if options.workload is not None:
        raise SpecError("scaleproof profile: SUITE names the networks; leave out --workload")
    names = (
        [options.experiment]
        if options.experiment
        else [name for name, experiment in suite.experiments.items() if size in experiment.sizes]
    )
    cases = [case for name in names for case in suite.experiment(name).size(size).cases]
    requests: dict[ProfileRequest, None] = {}
    for case in cases:
        if not replayed(case) or case.compute_options.profile is not None or case.framework != FRAMEWORK:
            continue
        try:
            profile_of(case, options.results / "machines" / machine_id())
        except SpecError:
            requests[request_of(case)] = None
        else:
            requests |= {request_of(case): None} if options.again else {}
    return list(requests)


def _show(options: argparse.Namespace, machine: str) -> int:
    """Print a row per profile; 1 if there is none."""
    from scaleproof.workloads.profile import FOLDER, read

    paths = sorted((options.results / "machines" / machine / FOLDER).glob("*.json"))
    print_node_types(options)
    if not paths:
        print(
            f"no profile of machine {machine} in {options.results}; type `scaleproof profile --help`", file=sys.stderr
        )
        return 1
    rows = []
    for path in paths:
        profile = read(path)
        times = [f"{seconds * 1e3:.4g}" for seconds in (profile.forward_s, profile.backward_s, profile.update_s.median)]
        rows.append(
            [
                profile.workload,
                _side(profile),
                f"{profile.width:g}",
                str(profile.batch),
                profile.framework,
                str(profile.threads),
                *times,
                profile.measured_at,
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


def print_profile(profile: Profile, where: str) -> None:
    """A row for each layer that takes at least SMALL_SHARE of the step, one for the others, and the sum."""
    side = "" if profile.image_side is None else f" at side {profile.image_side}"
    title = f"{where}: {profile.workload}{side}, width {profile.width:g}, batch {profile.batch}, {profile.framework}"
    print_table(_LAYER_COLUMNS, [*_layer_rows(profile), *_sum_rows(profile)], title)
    print(profile.taken)


def _layer_rows(profile: Profile) -> list[list[str]]:
    limit = SMALL_SHARE * profile.step_s
    large = [layer for layer in profile.layers if layer.forward_s.median + layer.backward_s.median >= limit]
    small = [layer for layer in profile.layers if layer not in large]
    rows = [_row(layer, profile.batch) for layer in large]
    if small:
        forward_ms = sum(layer.forward_s.median for layer in small) * 1e3
        backward_ms = sum(layer.backward_s.median for layer in small) * 1e3
        rows.append([f"{len(small)} smaller layers", "", f"{forward_ms:.3g}", "", f"{backward_ms:.3g}", "", "", ""])
    return rows


def _sum_rows(profile: Profile) -> list[list[str]]:
    """The whole network, and the optimiser's update."""
    flop = 2 * sum(layer.mac for layer in profile.layers) * profile.batch
    network = [
        "whole network",
        f"{flop / 2e6 / profile.batch:.4g}",
        f"{profile.forward_s * 1e3:.4g}",
        "",
        f"{profile.backward_s * 1e3:.4g}",
        "",
        "",
        _rate(flop, profile.forward_s),
    ]
    update = profile.update_s
    return [network, ["update", "", f"{update.median * 1e3:.3g}", _interval(update), "", "", "", ""]]


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


def _interval(spread: Spread) -> str:
    return "" if spread.low is None or spread.high is None else f"{spread.low * 1e3:.3g} to {spread.high * 1e3:.3g}"


def _rate(flop: float, seconds: float) -> str:
    return f"{flop / seconds / 1e9:.3g}" if flop and seconds else ""
