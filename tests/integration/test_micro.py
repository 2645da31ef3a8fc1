"""The programs of suite micro through the supervisor at size ci, and pytest-benchmark's JSON in the folder of
records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scaleproof.cli import main
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.digest import machine_id
from scaleproof.record.store import Store
from scaleproof.simulate.cost_file import read_costs
from scaleproof.simulate.processor_file import read_processor
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite
from scaleproof.workloads.jitter_model import read_jitter
from tests.integration.launches import assert_nothing_left

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "suites" / "micro"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("micro") / "results"


@pytest.mark.parametrize("experiment", ["costs", "collectives", "bandwidth", "message_rate", "bidirectional", "incast"])
def test_every_program_measures_over_tcp_and_shm_and_verifies_what_arrived(experiment: str, results: Path) -> None:
    suite = load_suite(FOLDER)
    outcome = run_plan(plan(suite, experiment, "ci"), results, size="ci", deadline_s=60)
    store = Store(results)
    for launch in outcome.launches:
        record, _ = store.load(launch)
        assert not isinstance(record.case, TrainCase)
        assert record.status == "ok", record.failure
        assert all(check.passed for check in record.checks)
        assert {check.name.split(".")[1] for check in record.checks if "." in check.name} in (
            {str(size) for size in record.case.sizes},
            set(),
        )
        rows = store.samples(record).to_pandas()
        timed = rows[~rows["warmup"] & ~rows["event"].isin(["start", "end", "processor"])]
        if record.case.arm == "handover":
            assert list(timed["event"]) == ["handover"] * record.case.iterations, "it moves no bytes"
            continue
        assert set(timed["nbytes"]) - {0} <= set(record.case.sizes) and len(set(timed["nbytes"]) - {0}) >= 3
    assert outcome.complete and {store.load(launch)[0].case.arm for launch in outcome.launches} >= {"tcp", "shm"}
    assert_nothing_left(results, outcome.launches)


def test_what_was_measured_is_fitted_for_this_machine(results: Path) -> None:
    run_plan(plan(load_suite(FOLDER), "costs", "ci"), results, size="ci", deadline_s=60)
    assert main(["fit", str(FOLDER), "costs", "--size", "ci", "--results", str(results)]) == 0
    costs = read_costs(results, machine_id())
    assert costs is not None and {fitted.arm for fitted in costs.transports} == {"tcp", "shm"}
    assert costs.handover_s is not None and 0 < costs.handover_s.value < 1
    for fitted in costs.transports:
        assert (
            fitted.transfer is not None
            and fitted.transfer.segments[-1].alpha_s.value + fitted.transfer.segments[-1].beta_s_per_byte.value > 0
        )
        assert fitted.transfer.segments[0].alpha_s.low is None  # one launch has no interval
        assert fitted.all_reduces[0].rounds is not None and all(Store(results).load(launch) for launch in fitted.runs)


def test_times_of_cores_and_jitter_are_fitted_for_this_machine(results: Path) -> None:
    suite = load_suite(FOLDER)
    for experiment in ("bandwidth", "jitter"):
        outcome = run_plan(plan(suite, experiment, "ci"), results, size="ci", deadline_s=90)
        assert main(["fit", str(FOLDER), experiment, "--size", "ci", "--results", str(results)]) == 0
        assert_nothing_left(results, outcome.launches)
    times, jitter = read_processor(results, machine_id()), read_jitter(results, machine_id())
    assert times is not None and [cost.transport for cost in times.transports] == ["tcp"], "a rank of shm polls"
    assert times.transports[0].send.message_s.value + times.transports[0].receive.message_s.value > 0
    assert jitter is not None and jitter.steps == 12 and jitter.rank_sigma is not None


def test_pytest_benchmarks_json_lies_with_the_records_and_names_them(results: Path) -> None:
    run_plan(plan(load_suite(FOLDER), "bandwidth", "ci"), results, size="ci", deadline_s=60)
    before = {record.launch for record in Store(results).records()}
    file = FOLDER / "bench" / "bench_bandwidth_tcp.py"
    options = [
        "-m",
        "pytest",
        str(file),
        "--benchmark-enable",
        "-p",
        "no:cacheprovider",
        "--size",
        "ci",
        "--results",
        str(results),
        "-q",
    ]
    # pytest-benchmark measures nothing in a worker of xdist, which this process may be.
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    argv = [sys.executable, *options]
    process = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stdout
    written = json.loads((results / "benchmarks" / "micro.bandwidth.tcp.ci.json").read_text())
    entries = written["benchmarks"]
    assert [entry["extra_info"]["nbytes"] for entry in entries] == [4, 1 << 10, 64 << 10, 256 << 10]
    store = Store(results)
    for entry in entries:
        info, (launch,) = entry["extra_info"], entry["extra_info"]["launches"]
        record, folder = store.load(launch)
        assert (record.case_id, record.case.arm, record.status) == (info["case"], "tcp", "ok") and folder.is_dir()
        rows = store.samples(record).to_pandas()
        rows = rows[(rows["event"] == "window") & ~rows["warmup"] & (rows["nbytes"] == info["nbytes"])]
        took = (rows["end_ns"].max() - rows["start_ns"].min()) / 1e9 / rows["value"].sum()
        assert entry["stats"]["data"] == pytest.approx([took])
    assert {record.launch for record in store.records()} == before  # taken from the records, not launched anew
