"""Recording must cost less than 1 % of a step: cost per event times events per step, and a step with and without it in
turns."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from scaleproof.core.recorder import Recorder, now
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec.case import parse_case
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.stats.bootstrap import ratio, ratio_interval

PAIRS = 450
CASE = {
    "program": "train",
    "suite": "bench",
    "experiment": "recording",
    "arm": "tcp",
    "transport": "tcp",
    "collective": "ring",
    "ranks": 2,
    "strategy": "sync_overlap",
    "workload": "cd_dnn",
    "workload.width": 0.25,
    "minibatch": 64,
    "steps": 12,
    "warmup": 2,
    "strategy.bucket_mib": 1.0,
}


def test_recording(recording: dict[str, Any], benchmark: BenchmarkFixture) -> None:
    events, step_s = events_of_a_step()
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder) / "events")
        benchmark(recorder.add, "communication", 1, 1, 2, 4096)
        assert benchmark.stats is not None
        event_s = benchmark.stats.stats.median
        with_it, without, again = turns(recorder, round(events), step_s)
    ab, aa = ratio_interval(with_it, without, paired=True), ratio_interval(again, without, paired=True)
    assert ab is not None
    assert aa is not None
    recording.update(
        event_us=1e6 * event_s,
        events_per_step=events,
        step_ms=1e3 * step_s,
        share=event_s * events / step_s,
        ab_ratio=ratio(with_it, without),
        ab_low=ab.low,
        ab_high=ab.high,
        aa_low=aa.low,
        aa_high=aa.high,
    )
    benchmark.extra_info.update(recording)


def events_of_a_step() -> tuple[float, float]:
    """Events per timed step of one rank and the median step in seconds, from a launch with small buckets (many
    events)."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_plan([PlannedLaunch(parse_case(CASE), 0, 0, 0)], Path(folder), size="full", deadline_s=120)
        store = Store(Path(folder))
        record, _ = store.load(outcome.launches[0])
        rows = store.samples(record).to_pandas()
    rows = rows[(rows["rank"] == 0) & ~rows["warmup"]]
    steps = rows[rows["event"].astype(str) == "step"]
    return len(rows) / len(steps), float((steps["end_ns"] - steps["start_ns"]).median()) / 1e9


def turns(recorder: Recorder, events: int, step_s: float) -> tuple[list[float], list[float], list[float]]:
    """Seconds of the same computing step with recording, without, and without again, in a random order in every
    turn."""
    work = np.ones((192, 192), np.float32)
    loops = max(1, round(step_s / (seconds_of(lambda: work @ work, 200) * events)))
    shuffler, times = random.Random(0), {"with": [], "without": [], "again": []}  # type: ignore[var-annotated]
    for turn in range(PAIRS):
        for arm in shuffler.sample(list(times), len(times)):
            start = time.perf_counter()
            for _ in range(events):
                begin = now()
                for _ in range(loops):
                    work @ work
                if arm == "with":
                    recorder.add("forward", turn, begin, now())
            times[arm].append(time.perf_counter() - start)
    return times["with"], times["without"], times["again"]


def seconds_of(run: Any, repeats: int) -> float:
    """Mean time of a call."""
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats
