"""Ordinary launches over transport rdma in guests: das2016's networks, reduced, on two and four nodes, over free and
shaped links; the same training as one worker's; and ranks at their own pace, which reach each other's memory. Every
figure from here is soft-RoCE's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.stats.training_equivalence import relative_difference
from tests.integration.guests import guest_case, need_guests
from tests.integration.launches import assert_nothing_left
from tests.integration.test_replicas import DIGITS as REPLICAS
from tests.integration.test_replicas_over_transports import ONE_SIDED, assert_one_sided, trained
from tests.short_form import case_from

STEPS = 3
SEED = 1000
DIGITS: dict[str, Any] = {
    "workload": "dnn_digits",
    "workload.data": "digits",
    "minibatch": 64,
    "steps": 12,
    "warmup": 0,
    "learning_rate": 0.05,
    "strategy.bucket_mib": 0.05,
}
CASES: dict[str, dict[str, Any]] = {
    "overfeat_fast": {"workload": "overfeat_fast", "workload.image_side": 71, "workload.width": 0.0625},
    "vgg_a at 1000 Mbit/s": {
        "workload": "vgg_a",
        "workload.image_side": 32,
        "workload.width": 0.0625,
        "fabric.link_mbit": 1000,
    },
    "cd_dnn on four nodes at 100 Mbit/s": {
        "workload": "cd_dnn",
        "workload.width": 0.0625,
        "ranks": 4,
        "nodes": 4,
        "fabric.link_mbit": 100,
    },
    "digits": DIGITS,
}
"""Each network once; free links between two nodes, shaped links between two and between four."""
TOLERANCE = 1e-5
MBIT, SHARE = 100, 0.8


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Record, Path]]:
    """One launch per case."""
    need_guests()
    results = tmp_path_factory.mktemp("training")
    common = {
        "program": "train",
        "transport": "rdma",
        "strategy": "sync_overlap",
        "minibatch": 8,
        "steps": STEPS,
        "warmup": 1,
        "transport.region_mib": 48,
    }
    cases = [guest_case(arm=name, **{**common, **fields}) for name, fields in CASES.items()]
    alone = case_from(
        {
            "suite": "tests",
            "experiment": "guests",
            "arm": "alone",
            "program": "train",
            "ranks": 1,
            "strategy": "local_only",
            **DIGITS,
        }
    )
    plan = [PlannedLaunch(case, 0, SEED, order) for order, case in enumerate([*cases, alone])]
    outcome = run_plan(plan, results, size="ci", deadline_s=180)
    assert_nothing_left(results, outcome.launches)
    records = [Store(results).load(launch)[0] for launch in outcome.launches]
    return {record.case.arm: (record, Store(results).folder(record)) for record in records}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CASES)
def test_networks_train_over_verbs(name: str, recorded: dict[str, tuple[Record, Path]]) -> None:
    record, _ = recorded[name]
    assert record.status == "ok", f"{record.failure}"
    assert record.checks and all(check.passed for check in record.checks)
    for rank in record.ranks:
        verbs = rank.facts["verbs"]
        assert (verbs["device"], verbs["gid_kind"], verbs["netdevs"], verbs["software"]) == (
            "rxe0",
            "RoCE v2",
            ["eth0"],
            True,
        )
        assert verbs["operations"]["send"] + verbs["operations"].get("write_with_imm", 0) > 2 * STEPS
    assert {rank["path"] for rank in record.transport["ranks"]} == {"verbs"}


@pytest.mark.timeout(900)
def test_two_nodes_train_as_one_worker_does(recorded: dict[str, tuple[Record, Path]]) -> None:
    double, single = (np.load(recorded[name][1] / "parameters.npy") for name in ("digits", "alone"))
    assert relative_difference(double, single) <= TOLERANCE


@pytest.mark.timeout(900)
def test_a_shaped_link_binds(recorded: dict[str, tuple[Record, Path]]) -> None:
    """All steps together take at least as long as the link needs for their bytes; the token bucket and the first
    parameters leave a little."""
    record, folder = recorded["cd_dnn on four nodes at 100 Mbit/s"]
    samples = pd.read_parquet(folder / "samples.parquet")
    steps = samples[(samples["event"] == "step") & (samples["rank"] == 0)]
    seconds = float(steps["end_ns"].max() - steps["start_ns"].min()) / 1e9
    asked_bytes = record.transport["traffic"][0]["nbytes"]
    assert seconds >= SHARE * asked_bytes * 8 / MBIT / 1e6, f"{asked_bytes} bytes in {seconds:.2f} s"


@pytest.mark.timeout(900)
def test_regions_of_ranks_are_reached_by_verbs(tmp_path: Path) -> None:
    """Gossip and elastic averaging by one-sided reads and writes, between two nodes."""
    need_guests()
    common = {**REPLICAS, "program": "train", "transport": "rdma", "transport.region_mib": 48}
    cases = [guest_case(arm=f"a{n}", **common, strategy=each) for n, each in enumerate(ONE_SIDED[1:])]
    plan = [PlannedLaunch(case, 0, SEED, order) for order, case in enumerate(cases)]
    outcome = run_plan(plan, tmp_path, size="ci", deadline_s=180)
    assert_nothing_left(tmp_path, outcome.launches)
    for launch in outcome.launches:
        record, _ = Store(tmp_path).load(launch)
        assert record.status == "ok", record.failure
        samples = Store(tmp_path).samples(record).to_pandas()
        assert_one_sided(record, samples, has_them=True)
        assert record.ranks[1].facts["verbs"]["operations"]["read bytes"] > 0
        assert trained(samples)
