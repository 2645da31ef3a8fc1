"""Suite sun2015 on Spark itself: the same step in every form, counts, a port that is taken, and nothing left behind.
Needs pyspark and Java 17."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from scaleproof.claims.suite_metrics import load_models
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import read_events
from scaleproof.programs.own import load_entry
from scaleproof.rank.unsupervised_ranks import run_ranks
from tests.short_form import case_from

pytest.importorskip("pyspark")
SUITE = Path(__file__).resolve().parents[2] / "suites" / "sun2015"
PROGRAMS = SUITE / "programs"
PROGRAM = load_entry(PROGRAMS, "mapreduce")
FORMS = ("naive", "combiner", "in_mapper")


def case(**options: Any) -> Any:
    given = {"layers": "64-20-10", "images": 24, "maps": 2, "reducers": 2, "decimals": 0, "workers": 0, "jobs": "naive"}
    fields = {"program": "own", "entry": "mapreduce", "suite": "sun2015", "experiment": "e", "arm": "a"}
    run = {"transport": "tcp", "collective": "ring", "ranks": options.pop("ranks", 1), "iterations": 1, "warmup": 0}
    return case_from(fields | run | {"options": given | options})


pytestmark = pytest.mark.skipif(PROGRAM.obstacle(case()) is not None, reason=str(PROGRAM.obstacle(case())))


def module(name: str) -> Any:
    return importlib.import_module(f"suite_programs.{name}")


def of_folder(folder: str) -> list[psutil.Process]:
    """Java processes of a launch."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        dead = process.info["status"] == psutil.STATUS_ZOMBIE
        if not dead and any(folder in part for part in process.info["cmdline"] or ()):
            found.append(process)
    return found


def test_every_form_of_the_job_in_one_process_is_the_serial_step_and_is_counted_exactly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The session's jobs take turns; what they count is that of the formulas, and no process is left."""
    monkeypatch.setattr(module("class_archive").NewArchive, "flag", "")  # none is written
    counts = load_models(SUITE / "models" / "__init__.py").counts
    wanted, told = case(jobs=" ".join(FORMS)), tmp_path / "folder"

    def body(context: RankContext) -> None:
        told.write_text(str(context.folder))
        PROGRAM.run(context)
        events = read_events(context.recorder.path)
        value = {event["event"].decode(): float(event["value"]) for event in events}
        for job in FORMS:
            assert value[f"difference.{job}"] < 1e-10
            assert value[f"pairs.{job}"] == counts.pairs_by_formula(wanted, job)
            assert value[f"bytes.{job}"] == pytest.approx(counts.bytes_by_formula(wanted, job), rel=0.03)
            assert value[f"remote.{job}"] == value[f"lost.{job}"] == 0
        assert context.artifacts["spark-events.json.gz"].exists()

    assert run_ranks(wanted, body, timeout_s=120) == [""]
    assert of_folder(told.read_text()) == []


def test_a_port_that_is_taken_is_said_in_one_line(tmp_path: Path) -> None:
    jvm = module("jvm")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(jvm.SparkDidNotStart) as raised:
            module("cluster").start_master("127.0.0.1", "secret", tmp_path, port)
    message = str(raised.value)
    assert message.startswith(f"Spark's master did not start at 127.0.0.1:{port}: java.net.BindException: ")
    assert "Address already in use" in message and "\n" not in message


def test_no_process_of_spark_outlives_a_rank_that_is_killed(tmp_path: Path) -> None:
    told = tmp_path / "folder"

    def body(context: RankContext) -> None:
        told.write_text(str(context.folder))
        cluster = module("cluster")
        cluster.start_gateway(context.address, cluster.scratch(context, "driver"))
        _, url = cluster.start_master(context.address, context.token, cluster.scratch(context, "master"))
        worker = cluster.scratch(context, "worker")
        cluster.start_worker(context.address, context.token, worker, url, 0)
        while len(of_folder(str(context.folder))) < 3:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)

    assert run_ranks(case(), body, timeout_s=120) == ["ended by SIGKILL"]
    deadline = time.monotonic() + 10
    while of_folder(told.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert of_folder(told.read_text()) == []
