"""`python -m benchmarks.launch_pitch [CHECKOUT ...]`: the time from one launch to the next, and the processor time that
a launch takes, of launches that do hardly anything. Several checkouts of the code are measured in turns."""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scaleproof.core.record_schema import Record
from scaleproof.launch.progress import Silent
from scaleproof.launch.supervisor import run_plan
from scaleproof.spec.case import parse_case
from scaleproof.spec.plan import PlannedLaunch

ROOT = Path(__file__).parents[1]
SEED, BLOCK, DEADLINE_S = 20_160_222, 5, 120.0
"""BLOCK: measured launches of a case per process of the supervisor; one more precedes them and is not counted, since it
contains the preflight."""
_SWEEP = {"transport": "tcp", "sizes": [1024], "iterations": 10, "warmup": 2}
_TRAINING = {"program": "train", "workload": {"name": "cd_dnn", "width": 0.125}, "minibatch": 16, "steps": 3}
CASES: dict[str, dict[str, Any]] = {
    "transfer over tcp": {"program": "transfer", **_SWEEP},
    "all-reduce over mpi": {"program": "collective", **_SWEEP, "transport": "mpi", "launcher": "mpirun"},
    "all-reduce over gloo": {"program": "collective", **_SWEEP, "transport": "gloo"},
    "training over tcp": {
        **_TRAINING,
        "strategy": "sync_overlap",
        "transport": "tcp",
        "collective": "ring",
        "learning_rate": 0.0001,
    },
}


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch, in s: `pitch_s` since the end of the one before, `wall_s` of its record, processor time of the
    supervisor and of the launch's processes."""

    pitch_s: float
    wall_s: float
    supervisor_s: float
    processes_s: float


class _Clock(Silent):
    """Notes the time and the processor time at the end of every launch."""

    def __init__(self) -> None:
        self.launches: list[Launched] = []
        self._last: list[float] = []

    def ended(self, record: Record) -> None:
        """SystemExit where the launch failed."""
        if record.status != "ok":
            raise SystemExit(record.failure.message if record.failure else record.status)
        now = [time.monotonic(), _used_s(resource.RUSAGE_SELF), _used_s(resource.RUSAGE_CHILDREN)]
        if self._last:
            pitch_s, supervisor_s, processes_s = (at - before for at, before in zip(now, self._last, strict=True))
            self.launches.append(Launched(pitch_s, record.wall_s, supervisor_s, processes_s))
        self._last = now


def _used_s(whose: int) -> float:
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime


def block(name: str, launches: int) -> list[Launched]:
    """Launches of a case in this process, after one that is not counted."""
    case = parse_case({"suite": "bench", "experiment": "launch_pitch", "arm": "pitch", "ranks": 2, **CASES[name]})
    clock = _Clock()
    with tempfile.TemporaryDirectory(prefix="scaleproof-bench-") as folder:
        plan = [PlannedLaunch(case, index, SEED + index, index) for index in range(launches + 1)]
        run_plan(plan, Path(folder), size="full", deadline_s=DEADLINE_S, progress=clock)
    return clock.launches


def measure(checkouts: Sequence[Path], names: Sequence[str], launches: int) -> dict[tuple[str, Path], list[Launched]]:
    """All launches by case and checkout, in blocks that take turns in a random order."""
    shuffler, measured = random.Random(SEED), defaultdict[tuple[str, Path], list[Launched]](list)
    tasks = [(name, checkout) for name in names for checkout in checkouts]
    for _ in range(-(-launches // BLOCK)):
        for name, checkout in shuffler.sample(tasks, len(tasks)):
            measured[name, checkout] += _block_of(checkout, name)
    return measured


def _block_of(checkout: Path, name: str) -> list[Launched]:
    """A block by the code of a checkout, in a process of its own."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (checkout / "harness", ROOT)))}
    command = [sys.executable, "-m", "benchmarks.launch_pitch", "--block", name]
    process = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return [Launched(**launch) for launch in json.loads(process.stdout)]


def table(measured: Mapping[tuple[str, Path], Sequence[Launched]]) -> str:
    """Medians in ms over the launches of each case and checkout."""
    lines = [
        "| launch | checkout | launches | pitch | wall time | processor time: supervisor | processes |",
        "|---|---|---|---|---|---|---|",
    ]
    for (name, checkout), launches in sorted(measured.items()):
        columns = zip(*(asdict(launch).values() for launch in launches), strict=True)
        medians = [f"{statistics.median(column) * 1e3:.0f} ms" for column in columns]
        lines.append(f"| {name} | {checkout.name} | {len(launches)} | {' | '.join(medians)} |")
    return "\n".join(lines)


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, help="folders of the project (default: this one)")
    parser.add_argument("--launches", type=int, default=20, help="of each case (default: %(default)s)")
    parser.add_argument("--only", choices=CASES, action="append", help="one case; repeatable")
    parser.add_argument("--block", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.block:
        print(json.dumps([asdict(launch) for launch in block(options.block, BLOCK)]))
        return 0
    checkouts = [checkout.resolve() for checkout in options.checkouts] or [ROOT]
    print(table(measure(checkouts, options.only or list(CASES), options.launches)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
