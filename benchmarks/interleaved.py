"""One run of all arms: blocks of launches, each block in a random order of its own, every launch in fresh processes."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from benchmarks.arms import BOUND, RING_OVER_GRPC, SIZES, TENSORFLOW_GRPC, Arm, transport_arms
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec import registry
from scaleproof.spec.case import CollectiveCase, TransferCase
from scaleproof.spec.plan import PlannedLaunch

DEADLINE_S = 120.0
PEER_TIMEOUT_S = 180.0
Sizes = dict[int, float]
"""Seconds per size in bytes: the median of one launch."""


@dataclass(slots=True)
class Measured:
    """Launches of every arm, in seconds by size, in the order of the blocks; and the reasons why launches are
    missing."""

    launches: int
    seed: int
    samples: dict[Arm, list[Sizes]] = field(default_factory=lambda: defaultdict(list))
    missing: dict[Arm, list[str]] = field(default_factory=lambda: defaultdict(list))

    def seconds(self, arm: Arm, size: int) -> list[float]:
        """One value per launch."""
        return [sample[size] for sample in self.samples.get(arm, [])]


def measure(launches: int, seed: int, report: Callable[[str], None]) -> Measured:
    """Run all blocks; records of the launches live in a temporary folder."""
    measured, shuffler = Measured(launches, seed), random.Random(seed)
    arms = transport_arms()
    with tempfile.TemporaryDirectory(prefix="scaleproof-bench-") as folder:
        for block in range(launches):
            tasks = [partial(_launch, measured, arm, case, block, Path(folder)) for arm, case in arms.items()]
            tasks += [partial(_bound, measured), partial(_tensorflow, measured)]
            shuffler.shuffle(tasks)
            report(f"block {block + 1} of {launches}: {len(tasks)} launches")
            for task in tasks:
                task()
    return measured


def _launch(measured: Measured, arm: Arm, case: CollectiveCase | TransferCase, block: int, results: Path) -> None:
    transport = case.transport
    assert transport is not None
    availability = registry.availability("transport", transport)
    if not availability.available:
        measured.missing[arm].append(availability.why)
        return
    outcome = run_plan(
        [PlannedLaunch(case, block, measured.seed + block, 0)], results, size="full", deadline_s=DEADLINE_S
    )
    store = Store(results)
    record, _ = store.load(outcome.launches[0])
    if record.status != "ok":
        measured.missing[arm].append(record.failure.message if record.failure else record.status)
        return
    measured.samples[arm].append(launch_medians(store.samples(record), arm.operation))


def launch_medians(samples: pa.Table, operation: str) -> Sizes:
    """Median over the timed iterations of one launch. all_reduce: the slowest rank of each call; transfer: half of rank
    0's round trip."""
    rows = samples.filter(pa.compute.invert(samples["warmup"])).to_pandas()
    rows = rows[rows["event"].astype(str) == operation]
    rows["seconds"] = (rows["end_ns"] - rows["start_ns"]) / 1e9
    slowest = rows.groupby(["nbytes", "step"])["seconds"].max()
    ways = 2 if operation == "transfer" else 1
    return {int(size): float(seconds) / ways for size, seconds in slowest.groupby("nbytes").median().items()}


def _bound(measured: Measured) -> None:
    seconds_by_operation = _peer("scaleproof.calibrate.memory_bandwidth", *map(str, SIZES))
    measured.samples[Arm(BOUND, 2, "all_reduce")].append(_sizes(seconds_by_operation["all_reduce"]))
    measured.samples[Arm(BOUND, 1, "copy")].append(_sizes(seconds_by_operation["copy"]))


def _tensorflow(measured: Measured) -> None:
    arms = {"all_reduce": Arm(RING_OVER_GRPC, 2, "all_reduce"), "transfer": Arm(TENSORFLOW_GRPC, 2, "transfer")}
    try:
        seconds_by_operation = _peer("benchmarks.tensorflow_peer")
    except subprocess.SubprocessError as error:
        reason = str(getattr(error, "stderr", "") or error).strip().rpartition("\n")[2]
        for arm in arms.values():
            measured.missing[arm].append(reason)
        return
    for operation, arm in arms.items():
        measured.samples[arm].append(_sizes(seconds_by_operation[operation]))


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


def median_rate(seconds: list[float], nbytes: int) -> float:
    """Bytes per second: algbw as nccl-tests defines it for all_reduce, bandwidth one way for a transfer."""
    return nbytes / statistics.median(seconds)
