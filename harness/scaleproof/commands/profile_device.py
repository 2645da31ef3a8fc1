"""`scaleproof profile --device cuda`: a GPU's times by layer, kept as a node type for predictions."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

from scaleproof.commands.common import print_table
from scaleproof.spec.errors import SpecError

if TYPE_CHECKING:
    from scaleproof.calibrate.measured_node_types import MeasuredNodeType
    from scaleproof.calibrate.measured_profiles import ProfileRequest

DEVICE = re.compile(r"cuda(:[0-9]+)?")
NAME = re.compile(r"[a-z][a-z0-9_]*")


def device_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for a GPU to `parser`."""
    parser.add_argument(
        "--device",
        default="cpu",
        metavar="NAME",
        help="cuda or cuda:N: a GPU of this node, kept as a node type for `predict --profile` (default: cpu)",
    )
    parser.add_argument(
        "--precision",
        metavar="NAME",
        help="of a GPU's products: bfloat16 (autocast; the default), tf32 or float32; parameters have 32 bits",
    )
    parser.add_argument("--name", metavar="NAME", help="of the node type (default: by GPU and precision)")


def check_device(options: argparse.Namespace) -> None:
    """SpecError for options of a GPU without one, for an unknown device or precision, and for a wrong name of a node
    type."""
    from scaleproof.calibrate.measured_node_types import PRECISIONS
    from scaleproof.spec.registry import nearest

    if options.device == "cpu":
        if options.precision or options.name:
            option = "--precision" if options.precision else "--name"
            raise SpecError(f"scaleproof profile: {option} is for a GPU: give --device cuda")
        return
    if DEVICE.fullmatch(options.device) is None:
        raise SpecError(f"scaleproof profile: --device {options.device!r}: write cpu, cuda or cuda:N")
    if options.precision is not None and options.precision not in PRECISIONS:
        advice = nearest(options.precision, list(PRECISIONS))
        raise SpecError(f"scaleproof profile: unknown --precision {options.precision!r}; {advice}")
    if options.suite is not None:
        raise SpecError("scaleproof profile: cases of a SUITE replay this machine's processor; leave out --device")
    if options.threads != 1:
        raise SpecError("scaleproof profile: --threads is for the processor; leave it out with --device cuda")
    if options.name is not None and NAME.fullmatch(options.name) is None:
        raise SpecError(
            f"scaleproof profile: --name {options.name!r}: lower-case letters, digits and _, a letter first"
        )


def measure_gpu(options: argparse.Namespace, request: ProfileRequest) -> MeasuredNodeType:
    """The node type with the profile of this network. SpecError where torch finds no such GPU."""
    from scaleproof.calibrate.device_environment import why_no_cuda
    from scaleproof.calibrate.device_profiles import measure_on_device

    device = options.device if ":" in options.device else f"{options.device}:0"
    if why := why_no_cuda(device):
        raise SpecError(f"scaleproof profile --device {options.device}: {why}")
    return measure_on_device(
        request,
        device,
        options.precision or "bfloat16",
        options.launches,
        lambda text: print(f"profile: {text}", file=sys.stderr, flush=True),
        options.name,
    )


def store_node_type(measured: MeasuredNodeType, options: argparse.Namespace) -> None:
    """Keep it; print where it is, and a command that uses it."""
    from scaleproof.calibrate.measured_node_types import keep

    (profile,) = measured.profiles
    print(f"{measured.name}: {measured.summary}")
    print(keep(measured, options.results))
    print(
        f"`scaleproof predict --workload {profile.workload} --profile {measured.name} --per-rank {profile.batch} "
        "--fabric 25g` computes with it"
    )


def print_node_types(options: argparse.Namespace) -> None:
    """A row for each network of each measured node type, if there is one."""
    from scaleproof.calibrate.measured_node_types import measured_node_types

    rows = []
    for measured in measured_node_types(options.results):
        for profile in measured.profiles:
            side = "" if profile.image_side is None else str(profile.image_side)
            times = [profile.forward_s, profile.backward_s, profile.update_s.median]
            rows.append(
                [
                    measured.name,
                    profile.workload,
                    side,
                    f"{profile.width:g}",
                    str(profile.batch),
                    *(f"{seconds * 1e3:.4g}" for seconds in times),
                    profile.measured_at,
                ]
            )
    columns = ["node type", "workload", "image side", "width", "batch", "forward (ms)", "backward (ms)", "update (ms)"]
    if rows:
        print_table([*columns, "measured"], rows, "node types measured on a GPU")
