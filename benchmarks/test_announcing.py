"""The cost of announcing each call and round of a collective: the same all-reduce with and without, in turns on the
same two ranks."""

from __future__ import annotations

import json
import random
import statistics
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from scaleproof.collectives.group import Group
from scaleproof.core.board import Board
from scaleproof.core.context import RankContext
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec import registry
from scaleproof.spec.case import parse_case
from scaleproof.stats.bootstrap import ratio, ratio_interval

NBYTES, CALLS, TURNS, WARMUP = 4096, 200, 40, 400


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_all_reduce_with_and_without_announcements(transport: str, benchmark: BenchmarkFixture) -> None:
    """The arms `untold` and `again` are equal: their ratio is the noise."""
    values = {
        "program": "collective",
        "suite": "bench",
        "experiment": "announcing",
        "arm": transport,
        "ranks": 2,
        "transport": transport,
        "collective": "ring",
    }
    case = parse_case({**values, "sizes": [NBYTES]})
    with TemporaryDirectory() as folder:
        assert run_ranks(case, partial(turns, out=Path(folder) / "times.json")) == ["", ""]
        times: dict[str, list[float]] = json.loads((Path(folder) / "times.json").read_text())
    interval, noise = (
        ratio_interval(times["told"], times["untold"], paired=True),
        ratio_interval(times["again"], times["untold"], paired=True),
    )
    assert interval is not None and noise is not None
    benchmark.extra_info.update(
        call_us=1e6 * statistics.median(times["untold"]),
        ratio=ratio(times["told"], times["untold"]),
        ratio_low=interval.low,
        ratio_high=interval.high,
        noise_low=noise.low,
        noise_high=noise.high,
    )
    replayed = iter(times["told"])
    benchmark.pedantic(lambda: time.sleep(next(replayed)), rounds=1)


def turns(context: RankContext, out: Path) -> None:
    """Median seconds of a call per turn and arm, in an order that both ranks draw alike."""
    transport = registry.load("transport", context.case.transport or "").connect(context)
    groups = {
        "told": Group(transport, "ring", context.post),
        "untold": Group(transport, "ring"),
        "again": Group(transport, "ring"),
    }
    buffer = transport.allocate(NBYTES).view(np.float32)
    buffer.fill(0)
    for group in groups.values():
        seconds_of(group, buffer, WARMUP)
    shuffler, times = random.Random(0), {name: list[float]() for name in groups}
    for _ in range(TURNS):
        for name in shuffler.sample(list(groups), len(groups)):
            times[name].append(seconds_of(groups[name], buffer, CALLS))
    if context.rank == 0:
        out.write_text(json.dumps(times))
    transport.close()


def seconds_of(group: Group, buffer: np.ndarray, calls: int) -> float:
    """Median time of a call."""
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        group.all_reduce(buffer).wait()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


@pytest.mark.parametrize("word", ["begin_call", "end_call", "round", "wait", "stop_waiting"])
def test_one_announcement_on_the_board(word: str, benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Cost of one announcement, the call of a Python method included."""
    post = Board(tmp_path / "board", 1).post(0)
    arguments = {"begin_call": ("all_reduce",), "round": (2,), "wait": (0,)}.get(word, ())
    benchmark(getattr(post, word), *arguments)
