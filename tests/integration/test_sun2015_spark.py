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
from scaleproof.launch.supervisor import run_plan
from scaleproof.programs.own import load_entry
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch
from tests.integration.launches import assert_nothing_left
from tests.integration.netns import need_netns
from tests.short_form import case_from

pytest.importorskip("pyspark")
SUITE = Path(__file__).resolve().parents[2] / "suites" / "sun2015"
PROGRAMS = SUITE / "programs"
FORMS = ("naive", "combiner", "in_mapper")


def case(**options: Any) -> Any:
    given = {"layers": "64-20-10", "images": 24, "maps": 2, "reducers": 2, "decimals": 0, "workers": 0, "jobs": "naive"}
    fields = {"program": "own", "entry": "mapreduce", "suite": "sun2015", "experiment": "e", "arm": "a"}
    run = {"transport": "tcp", "collective": "ring", "iterations": 1, "warmup": 0}
    run |= {name: options.pop(name) for name in ("ranks", "iterations", "fabric") if name in options}
    return case_from(fields | {"ranks": 1} | run | {"options": given | options})


OBSTACLE = load_entry(PROGRAMS, "mapreduce").obstacle(case())
pytestmark = pytest.mark.skipif(OBSTACLE is not None, reason=str(OBSTACLE))


def module(name: str) -> Any:
    """Of this suite, also after a test that has loaded the programs of another one."""
    load_entry(PROGRAMS, "rbm")
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
    program = module("mapreduce")
    monkeypatch.setattr(program, "ensure", lambda *_: False)
    counts = load_models(SUITE / "models" / "__init__.py").counts
    wanted, told = case(jobs=" ".join(FORMS)), tmp_path / "folder"

    def body(context: RankContext) -> None:
        told.write_text(str(context.folder))
        program.run(context)
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


def test_a_job_goes_on_after_its_worker_was_killed_and_finished_launches_stay(tmp_path: Path) -> None:
    """Two nodes of namespaces with a worker each, from a launch's start to its record. Where the user's cache has no
    archive of classes, it is written first."""
    need_netns()
    lone = {"hidden": 8, "images": 40, "decimals": 3, "minibatch": 10}
    before = case_from(
        {"program": "own", "entry": "learning", "suite": "sun2015", "experiment": "e", "arm": "a", "transport": "tcp"}
        | {"ranks": 1, "iterations": 2, "warmup": 0, "options": lone}
    )
    jobs = {"workers": 2, "jobs": "all_reduce naive killed", "images": 24, "maps": 4}
    killed = case(ranks=2, iterations=2, fabric={"name": "netns", "link_mbit": 100}, **jobs)
    plan = [PlannedLaunch(of, 0, 7 + order, order, str(PROGRAMS)) for order, of in enumerate((before, killed))]
    results = tmp_path / "results"
    outcome, store = run_plan(plan, results, size="smoke", deadline_s=150, stall_s=120), Store(results)
    records = [store.load(launch)[0] for launch in outcome.launches]
    assert [(record.status, record.failure) for record in records] == [("ok", None)] * 2
    first, record = records
    samples, models = store.frame(record), load_models(SUITE / "models" / "__init__.py")
    assert models.counts.weight_difference(record, samples) < 1e-10
    assert models.counts.killed_difference(record, samples) < 1e-10
    assert models.counts.lost_tasks(record, samples) >= 1 and models.counts.pairs_again(record, samples) > 0
    assert models.counts.remote_error(record, samples) < 0.2
    assert models.costs.naive_epoch_s(record, samples) > models.costs.all_reduce_epoch_s(record, samples) > 0
    assert models.costs.start_in_epochs(record, samples) > 0, "its processes had the archive"
    passes = models.learning.passes_saved(first, store.frame(first))
    assert passes is not None and passes >= 1, "the launch before it is as it was"
    assert_nothing_left(results, list(outcome.launches))
