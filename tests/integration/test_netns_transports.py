"""Every transport between two nodes of namespaces, unchanged: checked collectives, bytes on the links, training that
ends as one worker's does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.stats.training_equivalence import relative_difference
from tests.integration.launches import assert_nothing_left
from tests.integration.netns import need_netns, netns_case
from tests.short_form import case_from

MIB = 1 << 20
SEED = 1000
REDUCING = (
    "tcp",
    "grpc",
    "gloo",
    "horovod",
    "ucx",
    "mpi",
    "mpich",
    "horovod-mpi",
    "tensorflow-grpc",
    "tensorflow-mirrored",
)
DIGITS: dict[str, Any] = {
    "workload": "dnn_digits",
    "workload.data": "digits",
    "minibatch": 64,
    "steps": 8,
    "warmup": 0,
    "learning_rate": 0.05,
    "strategy.bucket_mib": 0.05,
}
TRAINING = ("tcp", "gloo", "mpi", "tcp hierarchical")
TWO_EACH: dict[str, Any] = {"ranks": 4, "nodes": 2, "transport": "tcp"}
CORES = {"mpi": {"fabric.node_cores": 2}}
"""With launcher mpirun all nodes but the first only wait: their control groups go too, which no warning `leftovers`
shows."""
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Record, Path]]:
    """One launch per transport over links of 500 Mbit/s, some that train, and one worker alone."""
    need_netns()
    results = tmp_path_factory.mktemp("transports")
    cases = [
        netns_case(
            arm=name, transport=name, sizes=[4096, MIB], iterations=2, warmup=1, link_mbit=500, **CORES.get(name, {})
        )
        for name in REDUCING
    ]
    trains = {"program": "train", "strategy": "sync_overlap", **DIGITS}
    cases += [
        netns_case(**{"arm": name, "sizes": [MIB], "fabric.link_mbit": 500, **TWO_EACH, "collective": name})
        for name in ("ring", "hierarchical")
    ]
    further = {"tcp hierarchical": {**TWO_EACH, "collective": "hierarchical"}}
    cases += [
        netns_case(**{"arm": f"{name} trains", "transport": name, **trains, **further.get(name, {})})
        for name in TRAINING
    ]
    cases.append(
        case_from(
            {"suite": "tests", "experiment": "netns", "arm": "alone", "ranks": 1, **trains, "strategy": "local_only"}
        )
    )
    outcome = run_plan(
        [PlannedLaunch(case, 0, SEED, order) for order, case in enumerate(cases)], results, size="ci", deadline_s=120
    )
    assert_nothing_left(results, outcome.launches)
    records = [Store(results).load(launch)[0] for launch in outcome.launches]
    return {record.case.arm: (record, Store(results).folder(record)) for record in records}


@pytest.mark.parametrize("name", REDUCING)
def test_a_transport_reduces_between_nodes_over_their_links(
    name: str, recorded: dict[str, tuple[Record, Path]]
) -> None:
    record, _ = recorded[name]
    assert (record.status, record.failure) == ("ok", None)
    assert record.checks and all(check.passed for check in record.checks)
    assert [status.facts["address"] for status in record.ranks] == ["10.77.0.1", "10.77.0.2"]
    for part in record.network:
        passed = part.after["eth0"]["tx_bytes"] - part.before["eth0"]["tx_bytes"]
        assert passed > 0.5 * part.asked_bytes > MIB / 2
    assert not {"other_address", "unseen_traffic", "contended_network", "leftovers"} & {
        warning.code for warning in record.warnings
    }


def test_the_hierarchical_algorithm_sends_less_between_nodes_than_a_ring_over_all_ranks(
    recorded: dict[str, tuple[Record, Path]],
) -> None:
    """Of n bytes n leave each of two nodes with two ranks, instead of 1.5 n."""
    sent = {}
    for name in ("ring", "hierarchical"):
        record, _ = recorded[name]
        assert (
            (record.status, record.failure) == ("ok", None)
            and record.checks
            and all(check.passed for check in record.checks)
        )
        first = record.network[0]
        sent[name] = first.after["eth0"]["tx_bytes"] - first.before["eth0"]["tx_bytes"]
    assert 0.6 < sent["hierarchical"] / sent["ring"] < 0.75


@pytest.mark.parametrize("name", TRAINING)
def test_nodes_train_as_one_worker_does(name: str, recorded: dict[str, tuple[Record, Path]]) -> None:
    record, folder = recorded[f"{name} trains"]
    assert (record.status, record.failure) == ("ok", None)
    alone = np.load(recorded["alone"][1] / "parameters.npy")
    assert relative_difference(np.load(folder / "parameters.npy"), alone) <= TOLERANCE
