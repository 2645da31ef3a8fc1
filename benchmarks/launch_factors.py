"""`python -m benchmarks.launch_factors`: what makes launches of one case differ. All-reduces and a training of two
ranks run with one factor changed at a time, all in interleaved blocks: fixed addresses, no huge pages, pinned ranks,
near cores."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute
from scipy import stats

from benchmarks.arms import Arm, transport_arms
from benchmarks.launches import DEADLINE_S, launch_medians
from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.digest import code_digest
from scaleproof.record.store import Store
from scaleproof.spec.case import AnyCase, parse_case
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.units import format_bytes
from scaleproof.stats import resolution
from scaleproof.stats.bootstrap import ratio, ratio_interval
from scaleproof.stats.intervals import median, smallest_count
from tools.reference import own_runs

ROOT = Path(__file__).parents[1]
VALUES = ROOT / "results" / "reference" / "launch_factors.json"
DOCS = ROOT / "docs" / "calibration.md"
BEGIN, END = "<!-- launch_factors -->", "<!-- end of launch_factors -->"
RANKS = 2
TRANSPORTS, SIZES = ("mpi", "shm", "tcp", "gloo"), (1 << 20, 64 << 20)
TRAINING, STEP = "training over tcp", "step"
SEED, BLOCKS, RESAMPLES = 20_160_222, 20, 4000
NEAR_S = 20.0
"""How long a launch of factor `near cores` waits for them at most."""
AS_IS = "as is"
_ADDR_NO_RANDOMIZE, _SAME_PERSONALITY, _THP_DISABLE = 0x0040000, 0xFFFFFFFF, 41
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def fixed_addresses() -> Iterator[None]:
    """No randomised address layout in processes that start meanwhile."""
    before = _libc.personality(_SAME_PERSONALITY)
    _libc.personality(before | _ADDR_NO_RANDOMIZE)
    try:
        yield
    finally:
        _libc.personality(before)


@contextmanager
def no_huge_pages() -> Iterator[None]:
    """No transparent huge pages in processes that start meanwhile."""
    _disable_huge_pages(1)
    try:
        yield
    finally:
        _disable_huge_pages(0)


def _disable_huge_pages(disable: int) -> None:
    if _libc.prctl(_THP_DISABLE, disable, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextmanager
def pinned() -> Iterator[None]:
    """Every rank on a core of its own, as soon as it has started."""
    ended = threading.Event()
    pinner = threading.Thread(target=_pin_ranks, args=(ended,))
    pinner.start()
    try:
        yield
    finally:
        ended.set()
        pinner.join()


def _pin_ranks(ended: threading.Event) -> None:
    cores, done = sorted(os.sched_getaffinity(0)), set[int]()
    while not ended.wait(0.02):
        ranks = [process for process in _leaves() if process.pid not in done]
        if len(ranks) != RANKS:  # not all have started, or all are pinned
            continue
        for core, process in zip(cores, sorted(ranks, key=lambda one: one.pid), strict=False):
            done.add(process.pid)
            for thread in Path(f"/proc/{process.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {core})


def _leaves() -> list[psutil.Process]:
    """Ranks are Python processes below this one that have no children."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            found += [process] if process.name().startswith("python") and not process.children() else []
        except psutil.Error:
            continue
    return found


class Factor(NamedTuple):
    """What a launch has changed."""

    title: str
    applied: Callable[[], AbstractContextManager[None]] = nullcontext
    near_cores_s: float | None = None


FACTORS = (
    Factor(AS_IS),
    Factor("fixed addresses", fixed_addresses),
    Factor("no huge pages", no_huge_pages),
    Factor("pinned ranks", pinned),
    Factor("near cores", near_cores_s=NEAR_S),
)
TASKS = [
    (name, factor)
    for name in (*TRANSPORTS, TRAINING)
    for factor in FACTORS
    # A rank of shm with one core takes it for a shared one and gives it away while it waits.
    if (name, factor.title) != ("shm", "pinned ranks")
]


ROWS = [*((name, str(size)) for size in SIZES for name in TRANSPORTS), (TRAINING, STEP)]
"""What the table has for each factor: an all-reduce of a size over a transport, or a step."""


def main() -> int:
    """Run the blocks, or only write the table of kept values anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="of one launch each (default: %(default)s)")
    parser.add_argument("--table", action="store_true", help="only the table of docs/calibration.md, from kept values")
    options = parser.parse_args()
    if not options.table:
        VALUES.write_text(json.dumps(measure(options.blocks), indent=1) + "\n")
        own_runs.note(VALUES)
    own_runs.check(names=[own_runs.LAUNCH_FACTORS])
    text = table(json.loads(VALUES.read_text()))
    print(text)
    before, _, rest = DOCS.read_text().partition(BEGIN)
    DOCS.write_text(before + text + rest.partition(END)[2])
    return 0


def measure(blocks: int) -> dict[str, Any]:
    """Seconds of every launch by kind and factor, and the distance of its cores."""
    shuffler = random.Random(SEED)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="scaleproof-bench-") as folder:
        for block in range(blocks):
            print(f"block {block + 1} of {blocks}: {len(TASKS)} launches", file=sys.stderr, flush=True)
            for name, factor in shuffler.sample(TASKS, len(TASKS)):
                record, seconds = one_launch(name, factor, block, Path(folder))
                rows.append({"block": block, "transport": name, "factor": factor.title, **facts(record)})
                rows[-1]["seconds"] = {key: float(f"{value:.6g}") for key, value in seconds.items()}
        machine = record.environment
    kept = {key: machine[key] for key in ("cpu", "cores", "kernel", "transparent_huge_pages")}
    return {"date": datetime.now(UTC).date().isoformat(), "code": code_digest(), "machine": kept, "launches": rows}


def case_of(name: str) -> AnyCase:
    """All-reduces of both sizes over a transport, or a training of CD-DNN."""
    if name != TRAINING:
        return transport_arms()[Arm(name, RANKS, "all_reduce")].changed({"sizes": list(SIZES)})
    return parse_case(
        {
            "suite": "bench",
            "experiment": "launch_factors",
            "arm": name,
            "program": "train",
            "workload": {"name": "cd_dnn", "width": 0.25},
            "minibatch": 128,
            "steps": 20,
            "warmup": 3,
            "strategy": "sync_overlap",
            "transport": "tcp",
            "collective": "ring",
            "ranks": RANKS,
            "learning_rate": 0.0001,
        }
    )


def one_launch(name: str, factor: Factor, block: int, results: Path) -> tuple[Record, dict[str, float]]:
    """A launch; its record, and the median call of each size, or the median step of the slowest rank. SystemExit where
    it fails."""
    case = case_of(name).changed({"arm": f"{name}, {factor.title}"})
    with factor.applied():
        outcome = run_plan(
            [PlannedLaunch(case, block, SEED + block, 0)],
            results,
            size="full",
            deadline_s=DEADLINE_S,
            near_cores_s=factor.near_cores_s,
        )
    store = Store(results)
    record, _ = store.load(outcome.launches[0])
    if record.status != "ok":
        raise SystemExit(f"{case.arm}: {record.failure.message if record.failure else record.status}")
    if name == TRAINING:
        return record, {STEP: slowest_step(store.samples(record))}
    return record, {str(size): value for size, value in launch_medians(store.samples(record), "all_reduce").items()}


def slowest_step(samples: pa.Table) -> float:
    """Median over timed steps of the slowest rank's step, in s."""
    rows = samples.filter(pa.compute.invert(samples["warmup"])).to_pandas()
    rows = rows[rows["event"].astype(str) == STEP]
    return float(((rows["end_ns"] - rows["start_ns"]) / 1e9).groupby(rows["step"]).max().median())


def facts(record: Record) -> dict[str, Any]:
    """How far the cores were before the launch, and how long it waited for near ones."""
    distance = record.environment["load"]["before"].get("core_distance") or {}
    return {"round_trip_ns": distance.get("round_trip_ns"), "waited_s": distance.get("waited_s")}


def table(kept: dict[str, Any]) -> str:
    """The table of docs/calibration.md, between its marks."""
    machine, launches = kept["machine"], kept["launches"]
    head = f"{len(launches)} launches, {machine['cpu']}, {kept['date']}"
    lines = [
        BEGIN,
        f"| {head} | changed | median | over as is | spread of a launch | resolution | median distance of the cores |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [_row(launches, name, key, task.title) for name, key in ROWS for other, task in TASKS if other == name]
    return "\n".join([*lines, END])


def _row(launches: Sequence[dict[str, Any]], name: str, key: str, factor: str) -> str:
    rows, base = _of(launches, name, factor), _of(launches, name, AS_IS)
    seconds, plain = ([row["seconds"][key] for row in side] for side in (rows, base))
    over = "" if factor == AS_IS else _with_interval(ratio(seconds, plain), ratio_interval(seconds, plain, paired=True))
    distances = [row["round_trip_ns"] for row in rows if row["round_trip_ns"] is not None]
    distance = f"{median(distances):.0f} ns" if distances else ""
    title = f"{name}, a step" if key == STEP else f"{name}, {format_bytes(int(key))}"
    values = f"{median(seconds) * 1e3:.3g} ms | {over} | {_spread(seconds)} | {_resolution(seconds)} | {distance}"
    return f"| {title} | {factor} | {values} |"


def _of(launches: Sequence[dict[str, Any]], name: str, factor: str) -> list[dict[str, Any]]:
    rows = [row for row in launches if (row["transport"], row["factor"]) == (name, factor)]
    return sorted(rows, key=lambda row: row["block"])


def _with_interval(value: float, interval: Any) -> str:
    return f"{value:.2f}" + (f" ({interval.low:.2f} to {interval.high:.2f})" if interval else "")


def _resolution(seconds: Sequence[float]) -> str:
    """The smallest slowdown that comparisons of 6 launches an arm find in 95 of 100 cases, at this spread."""
    if len(seconds) < 3:
        return ""
    found = resolution.of_ratio(float(np.std(np.log(seconds))), smallest_count(), floor=0.0)
    return f"{100 * found:.0f} %"


def _spread(seconds: Sequence[float]) -> str:
    """Standard deviation of the logarithm, with a bootstrap interval."""
    logs = np.log(seconds)
    if len(logs) < 3:
        return ""
    drawn = stats.bootstrap(
        (logs,), np.std, n_resamples=RESAMPLES, method="percentile", rng=np.random.default_rng(SEED)
    ).confidence_interval
    return f"{100 * np.std(logs):.0f} % ({100 * drawn.low:.0f} to {100 * drawn.high:.0f})"


if __name__ == "__main__":
    raise SystemExit(main())
