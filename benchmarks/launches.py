"""How an arm is launched once under a setting: ranks of the harness, TensorFlow's own runtime, or the program of the
bounds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from benchmarks.arms import BOUND, PLAIN, RING_OVER_GRPC, TENSORFLOW_GRPC, Arm, transport_arms
from benchmarks.tuning import Setting, Sizes
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec import registry
from scaleproof.spec.case import CollectiveCase, TransferCase
from scaleproof.spec.plan import PlannedLaunch

DEADLINE_S = 120.0
PEER_TIMEOUT_S = 180.0
Launch = Callable[[Setting, Sequence[int], int], Sizes]
"""One launch under a setting, of some sizes, with a number that no other launch of the run has."""
PLAIN_BOUND = f"{BOUND}{PLAIN}"
COPY, PLAIN_MESSAGE = Arm(BOUND, 1, "copy"), Arm(PLAIN_BOUND, 2, "transfer")
"""Bounds of a transfer: between registered buffers it is one copy by one core. Copies there and back take turns, as the
messages do, so that caches hold as much of them."""
PROGRAMS = {
    "scaleproof.calibrate.memory_bandwidth": {
        "all_reduce": Arm(BOUND, 2, "all_reduce"),
        "message": COPY,
    },
    "scaleproof.calibrate.plain_bandwidth": {
        "all_reduce": Arm(PLAIN_BOUND, 2, "all_reduce"),
        "message": PLAIN_MESSAGE,
    },
}
"""The programs of the bounds, and what each measures."""
BOUNDS = tuple(arm for arms in PROGRAMS.values() for arm in arms.values())
TENSORFLOW = (Arm(RING_OVER_GRPC, 2, "all_reduce"), Arm(TENSORFLOW_GRPC, 2, "transfer"))


class NotMeasured(Exception):
    """An arm cannot run here, or a launch failed; the text says why."""


def launches(results: Path, seed: int) -> dict[Arm, Launch]:
    """Every arm but the bounds. Records of the harness's launches go to `results`."""
    arms: dict[Arm, Launch] = {
        arm: partial(_transport, arm, case, results, seed) for arm, case in transport_arms().items()
    }
    return arms | {arm: partial(_tensorflow, arm) for arm in TENSORFLOW}


def bounds(sizes: Sequence[int]) -> dict[Arm, Sizes]:
    """One launch of each program of the bounds."""
    measured: dict[Arm, Sizes] = {}
    for program, arms in PROGRAMS.items():
        seconds_by_operation = _peer(program, *map(str, sizes))
        measured |= {arm: _sizes(seconds_by_operation[operation]) for operation, arm in arms.items()}
    return measured


def bound_of(arm: Arm) -> Arm | None:
    """The bound of an arm by the kind of its buffers; None where it has none, or is one. In a transfer two ranks move
    bytes, however many there are."""
    if arm in BOUNDS:
        return None
    plain = arm.name.endswith(PLAIN)
    if arm.operation == "transfer":
        return (PLAIN_MESSAGE if plain else COPY) if _copied_by_cores(arm) else None
    bound = Arm(PLAIN_BOUND if plain else BOUND, arm.ranks, arm.operation)
    return bound if bound in BOUNDS else None


def _copied_by_cores(arm: Arm) -> bool:
    """Whether the arm's transport has registered and plain buffers, and a core moves the bytes, not a device."""
    transport = arm.name.removesuffix(PLAIN)
    if transport not in registry.names("transport"):
        return False
    entry = registry.get("transport", transport)
    return entry.own_memory and entry.within_node == "memory"


def obstacle(arm: Arm) -> str:
    """Why an arm cannot run here; empty if it can, as far as that is known without a launch."""
    transport = arm.name.removesuffix(PLAIN)
    if transport not in registry.names("transport"):
        return ""
    availability = registry.availability("transport", transport)
    return "" if availability.available else availability.why


def _transport(
    arm: Arm,
    case: CollectiveCase | TransferCase,
    results: Path,
    seed: int,
    setting: Setting,
    sizes: Sequence[int],
    number: int,
) -> Sizes:
    if why := obstacle(arm):
        raise NotMeasured(why)
    launched = case.changed({**setting.options, "sizes": list(sizes)})
    with setting.applied():
        outcome = run_plan(
            [PlannedLaunch(launched, number, seed + number, 0)], results, size="full", deadline_s=DEADLINE_S
        )
    store = Store(results)
    record, _ = store.load(outcome.launches[0])
    if record.status != "ok":
        raise NotMeasured(record.failure.message if record.failure else record.status)
    return launch_medians(store.samples(record), arm.operation)


def launch_medians(samples: pa.Table, operation: str) -> Sizes:
    """Median over the timed iterations of one launch. all_reduce: the slowest rank of each call; transfer: half of rank
    0's round trip."""
    rows = samples.filter(pa.compute.invert(samples["warmup"])).to_pandas()
    rows = rows[rows["event"].astype(str) == operation]
    rows["seconds"] = (rows["end_ns"] - rows["start_ns"]) / 1e9
    slowest = rows.groupby(["nbytes", "step"])["seconds"].max()
    ways = 2 if operation == "transfer" else 1
    return {int(size): float(seconds) / ways for size, seconds in slowest.groupby("nbytes").median().items()}


def _tensorflow(arm: Arm, setting: Setting, sizes: Sequence[int], number: int) -> Sizes:
    options = [word for name, value in setting.options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    with setting.applied():
        try:
            seconds = _peer("benchmarks.tensorflow_peer", arm.operation, "--sizes", *map(str, sizes), *options)
        except subprocess.SubprocessError as error:
            reason = str(getattr(error, "stderr", "") or error)
            raise NotMeasured(reason.strip().rpartition("\n")[2]) from error
    return _sizes(seconds)


def _peer(module: str, *arguments: str) -> Any:
    root = Path(__file__).parents[1]
    process = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=PEER_TIMEOUT_S,
        check=True,
    )
    return json.loads(process.stdout)


def _sizes(seconds_by_size: dict[str, float]) -> Sizes:
    return {int(size): seconds for size, seconds in seconds_by_size.items()}
