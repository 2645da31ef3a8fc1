"""The suite crosscheck on real tools: each program gives its number, and nothing that it starts outlives the launch or
listens to the world."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.core.launch_spec import ENVIRONMENT
from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.launch.teardown import shared_memory
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.programs import programs_folder
from tests.family import remaining
from tests.short_form import case_from

SUITE = Path(__file__).parents[2] / "suites" / "crosscheck"
NET = {"workload": "dnn_digits", "data": "digits", "minibatch": 64, "bucket_mib": 0.05}
MIB = 1 << 20
CASES: dict[str, dict[str, Any]] = {
    "iperf3": {"entry": "iperf3", "sizes": [MIB], "options": {"messages": 64}},
    "stream": {"entry": "stream", "transport": "tcp", "sizes": [MIB], "options": {"messages": 64, "window": 4}},
    "mpi_bench": {
        "entry": "mpi_bench",
        "ranks": 1,
        "sizes": [8, 1024],
        "iterations": 20,
        "warmup": 2,
        "options": {"tool": "mpi4py_pingpong"},
    },
    "mpi_calls": {
        "entry": "mpi_calls",
        "transport": "mpi",
        "launcher": "mpirun",
        "sizes": [8, 1024],
        "iterations": 20,
        "options": {"written": 1},
    },
    "ddp": {"entry": "ddp", "iterations": 5, "warmup": 1, "options": {**NET, "bucket_view": 1}},
    "horovod": {
        "entry": "horovod_synthetic",
        "transport": "horovod",
        "iterations": 6,
        "warmup": 1,
        "options": {**NET, "rounds": 2},
    },
    "gnu_time": {"entry": "whole_launch", "ranks": 1, "options": {"tool": "gnu_time", "calls": 200}},
    "hyperfine": {"entry": "whole_launch", "ranks": 1, "options": {"tool": "hyperfine", "calls": 200}},
}
GIVES = {
    "iperf3": ("stream_bandwidth", MIB),
    "stream": ("stream_bandwidth", MIB),
    "mpi_bench": ("one_way_mean", 8),
    "mpi_calls": ("one_way_mean", 1024),
    "ddp": ("step_s", None),
    "horovod": ("training_rate", None),
    "gnu_time": ("launch_wall_ratio", None),
    "hyperfine": ("launch_cpu_ratio", None),
}
COMMANDS = {"iperf3": "iperf3", "gnu_time": "time", "hyperfine": "hyperfine"}


def launch(name: str, **fields: Any) -> PlannedLaunch:
    """A small case of one of the suite's programs."""
    common = {"program": "own", "suite": "crosscheck", "experiment": "e", "arm": name, "ranks": 2}
    return PlannedLaunch(case_from({**common, **CASES[name], **fields}), 0, 5, 0, str(programs_folder(SUITE)))


def run(planned: PlannedLaunch, results: Path) -> tuple[Record, Store]:
    outcome = run_plan([planned], results, size="ci", deadline_s=60)
    store = Store(results)
    return store.load(outcome.launches[0])[0], store


def need(name: str) -> None:
    if name in COMMANDS and shutil.which(COMMANDS[name]) is None:
        pytest.skip(f"{COMMANDS[name]} is not installed")


@pytest.mark.parametrize("name", list(CASES))
def test_each_program_gives_its_number(name: str, tmp_path: Path) -> None:
    need(name)
    record, store = run(launch(name), tmp_path)
    assert (record.status, record.failure) == ("ok", None)
    assert "leftovers" not in [warning.code for warning in record.warnings]
    metric_name, nbytes = GIVES[name]
    metric, samples = suite_metrics(SUITE)[metric_name], store.samples(record).to_pandas()
    value = (
        metric.size(record, samples, nbytes)
        if metric.size and nbytes
        else metric.launch(record, samples)
        if metric.launch
        else None
    )
    assert value is not None and np.isfinite(value) and value > 0


def test_ddp_and_our_strategy_train_the_same_network(tmp_path: Path) -> None:
    """Otherwise their step times could not be compared."""
    record, store = run(launch("ddp"), tmp_path / "theirs")
    fields = {
        **NET,
        "program": "train",
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "ranks": 2,
        "transport": "gloo",
        "strategy": "sync_overlap",
    }
    ours, our_store = run(PlannedLaunch(case_from({**fields, "steps": 5, "warmup": 1}), 0, 5, 0), tmp_path / "ours")
    theirs, mine = (
        np.load(where.folder(one) / "parameters.npy") for where, one in ((store, record), (our_store, ours))
    )
    np.testing.assert_allclose(mine, theirs, atol=1e-6)


LONG: dict[str, dict[str, Any]] = {
    "iperf3": {"options": {"messages": 1 << 18}},
    "mpi_bench": {"iterations": 10_000_000},
    "gnu_time": {"options": {"tool": "gnu_time", "calls": 10_000_000}},
}
AT_WORK = {"iperf3": (2, "--client"), "mpi_bench": (3, "mpi4py.bench"), "gnu_time": (4, "gnu_time.1")}
"""Processes below the ranks when the tool is at work, and a word of one's command: server and client; mpirun and its
two; time, parent and two ranks of the second inner launch."""


@pytest.mark.parametrize("name", list(LONG))
def test_a_tool_dies_with_its_rank_and_listens_on_the_loopback_only(name: str, tmp_path: Path) -> None:
    need(name)
    tools: list[psutil.Process] = []
    listening, ids = set[str](), set[str]()
    killer = threading.Thread(target=_kill_rank_0_at_work, args=(tmp_path, *AT_WORK[name], tools, listening, ids))
    killer.start()
    record, _ = run(launch(name, **LONG[name]), tmp_path)
    killer.join()
    assert len(tools) >= AT_WORK[name][0]
    assert record.failure is not None and record.failure.code == "rank_killed"
    assert not remaining(tools)
    assert listening <= {"127.0.0.1"}
    assert record.launch in ids and (len(ids) == 2) == (name == "gnu_time"), "the launch inside it has an id of its own"
    assert not [name for launch in ids for name in shared_memory(launch)]


def _kill_rank_0_at_work(
    results: Path, below: int, word: str, seen: list[psutil.Process], listening: set[str], ids: set[str]
) -> None:
    until = time.monotonic() + 40
    while time.monotonic() < until:
        time.sleep(0.02)
        with contextlib.suppress(psutil.NoSuchProcess):  # gnu_time: the first inner launch is over in a moment
            tools = _at_work(results)
            if len(tools) < below or not any(word in " ".join(tool.cmdline()) for tool in tools):
                continue
            time.sleep(0.2)  # into the measuring
            # mpirun's own channel cannot be bound (docs/transports/mpi.md): the tools below it must not listen.
            mine = [tool for tool in tools if tool.name() not in ("mpirun", "prterun")]
            listening |= {
                one.laddr.ip
                for tool in mine
                for one in tool.net_connections("inet")
                if one.status == psutil.CONN_LISTEN
            }
            if _at_work(results) == tools:
                ids |= {process.environ()[ENVIRONMENT] for process in (*tools, *_ranks(results))}
                seen += tools
                os.kill(_ranks(results)[0].pid, signal.SIGKILL)
                return


def _at_work(results: Path) -> list[psutil.Process]:
    """All processes below the ranks, once each is the tool itself."""
    tools = [child for rank in _ranks(results) for child in rank.children(recursive=True)]
    return [] if any("tie.py" in " ".join(tool.cmdline()) for tool in tools) else tools


def _ranks(results: Path) -> list[psutil.Process]:
    """The ranks of the launch under way, by their number: the children of the parent that this process started."""
    parents = [
        child
        for child in psutil.Process().children()
        if "scaleproof.rank.fork_ranks" in child.cmdline() and str(results) in " ".join(child.cmdline())
    ]
    return sorted((rank for parent in parents for rank in parent.children()), key=lambda rank: rank.pid)


OSU = """\
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 0
echo "# OSU MPI Latency Test v7.3"
echo "# Datatype: MPI_CHAR."
echo "# Size       Avg Latency(us)"
echo "8                       0.25"
echo "16                      0.50"
echo "$*" > "$OSU_SAYS"
"""


def test_the_osu_benchmarks_are_run_where_the_user_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"options": {"tool": "osu_latency"}, "sizes": [8, 16], "iterations": 30, "warmup": 3}
    record, _ = run(launch("mpi_bench", **options), tmp_path / "without")
    assert record.failure is not None and (record.status, record.failure.message) == (
        "not_runnable",
        "osu_latency is not installed",
    )
    (tmp_path / "osu_latency").write_text(OSU)
    (tmp_path / "osu_latency").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("OSU_SAYS", str(tmp_path / "said"))
    record, store = run(launch("mpi_bench", **options), tmp_path / "with")
    metric = suite_metrics(SUITE)["one_way_mean"].size
    assert metric is not None
    assert [metric(record, store.samples(record).to_pandas(), size) for size in (8, 16)] == pytest.approx(
        [0.25e-6, 0.5e-6]
    )
    assert (tmp_path / "said").read_text().split() == ["-m", "8:16", "-i", "30", "-x", "3"]


def test_a_tool_that_fails_fails_the_launch_with_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "osu_latency").write_text("#!/bin/sh\necho 'This test requires exactly two processes' >&2\nexit 3\n")
    (tmp_path / "osu_latency").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    record, _ = run(launch("mpi_bench", options={"tool": "osu_latency"}), tmp_path / "results")
    assert record.failure is not None and record.status == "failed"
    assert (
        "mpirun ended with code 3" in record.failure.message
        and "requires exactly two processes" in record.failure.message
    )
