"""das2016, "without altering hyper-parameters": any number of workers at one global minibatch is the same training, on
every transport."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # noqa: F401  imported before the ranks are forked, as their parent does
from pydantic import ValidationError

from scaleproof.claims.metrics_pairs import EQUIVALENT
from scaleproof.core.context import RankContext
from scaleproof.programs import train
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.stats.training_equivalence import relative_difference
from scaleproof.strategies.parameter_server import ParameterServer
from scaleproof.strategies.sync import Sync
from tests.integration._training import Outcome, case_of, launch
from tests.stand_in import stand_in

MECHANISMS = ("messages", "rpc", "copy", "zero_copy", "dynamic")
# Under mpirun only: the supervisor's tests run that one. Where a device is needed: test_rdma_training.py, in guests.
ENTRIES = {name: registry.get("transport", name) for name in registry.names("transport")}
TRANSPORTS = [name for name, entry in ENTRIES.items() if entry.launcher == "local" and not entry.devices]
# What this build of a library lacks cannot run (transports/nccl.py and others); what is merely not installed fails
# here.
TRANSPORTS = [
    name for name in TRANSPORTS if not ENTRIES[name].probe or registry.availability("transport", name).available
]
GROUPS = [(name, "ring" if registry.get("transport", name).point_to_point else "native") for name in TRANSPORTS]
GROUPS += [
    ("shm", name)
    for name in registry.algorithms()
    if name != "ring" and not registry.get("collective", name).knows_nodes
]
"""The hierarchical one needs nodes: test_netns_transports.py."""
SERVED = [
    ("tcp", "messages", 2, 1),
    ("grpc", "messages", 2, 1),
    *(("ucx", mechanism, 2, 1) for mechanism in MECHANISMS),
]
SERVED += [("shm", mechanism, *ranks_servers) for mechanism in MECHANISMS for ranks_servers in ((2, 1), (4, 0))]
STRATEGIES = [
    name
    for name in registry.names("strategy")
    if registry.get("strategy", name).communicates and registry.get("strategy", name).rank_program is None
]
"""Synchronous ones: replicas of the others differ (test_replicas.py)."""
STEPS = 40
TENSORS = 8
"""Parameters of dnn_digits."""
TOLERANCE = EQUIVALENT
"""Rounding gives at most 5e-7, the mistake of the negative control 1e-3 and more (docs/workloads.md)."""


@cache
def reference(workload: str, folder: Path) -> Outcome:
    """One worker with the whole minibatch."""
    return launch(folder / workload, case_of(workload=workload, steps=STEPS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("equivalence")


def assert_equivalent(outcome: Outcome, base: Outcome) -> None:
    assert outcome.failed_checks == []
    assert relative_difference(outcome.values("loss"), base.values("loss")) <= TOLERANCE
    assert relative_difference(outcome.parameters, base.parameters) <= TOLERANCE


@pytest.mark.parametrize(("transport", "algorithm"), GROUPS)
@pytest.mark.parametrize("ranks", [2, 4])
def test_workers_train_as_one_does(transport: str, algorithm: str, ranks: int, folder: Path) -> None:
    if transport.startswith("tensorflow"):
        pytest.importorskip("tensorflow")
    fields: dict[str, Any] = {
        "ranks": ranks,
        "transport": transport,
        "collective": algorithm,
        "strategy": "sync_overlap",
        "steps": STEPS,
    }
    outcome = launch(folder / f"{transport}-{algorithm}-{ranks}", case_of(**fields))
    assert_equivalent(outcome, reference("dnn_digits", folder))


@pytest.mark.parametrize(("transport", "mechanism", "ranks", "servers"), SERVED)
def test_workers_with_parameter_servers_train_as_one_does(
    transport: str, mechanism: str, ranks: int, servers: int, folder: Path
) -> None:
    fields: dict[str, Any] = {
        "ranks": ranks,
        "transport": transport,
        "collective": "ring",
        "strategy.servers": servers,
        "strategy.mechanism": mechanism,
        "steps": STEPS,
    }
    outcome = launch(folder / f"{transport}-{mechanism}-{ranks}", case_of(strategy="parameter_server", **fields))
    assert_equivalent(outcome, reference("dnn_digits", folder))
    assert outcome.count("communication") == outcome.count("queue") == STEPS * TENSORS


def test_tensorflow_workers_with_parameter_servers_train_as_one_torch_worker_does(folder: Path) -> None:
    pytest.importorskip("tensorflow")
    fields = {
        "ranks": 2,
        "transport": "shm",
        "collective": "ring",
        "strategy.mechanism": "zero_copy",
        "framework": "tensorflow",
        "steps": STEPS,
    }
    assert_equivalent(
        launch(folder / "tensorflow-served", case_of(strategy="parameter_server", **fields)),
        reference("dnn_digits", folder),
    )


@pytest.mark.parametrize("workload", ["dnn_digits", "vgg_digits"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_workers_of_every_strategy_train_as_one_does(strategy: str, workload: str, folder: Path) -> None:
    case = case_that_fits(strategy, workload)
    if case.framework == "tensorflow":
        pytest.importorskip("tensorflow")
    outcome = launch(folder / f"{strategy}-{workload}", case)
    assert_equivalent(outcome, reference(workload, folder))


def case_that_fits(strategy: str, workload: str) -> TrainCase:
    """Two workers over the first transport that the strategy runs over."""
    errors = []
    for fields in (
        {"transport": "shm", "collective": "ring"},
        {"transport": "tensorflow-grpc", "framework": "tensorflow"},
    ):
        try:
            return case_of(workload=workload, ranks=2, strategy=strategy, steps=STEPS, **fields)
        except ValidationError as error:
            errors.append(error)
    raise errors[0]


@pytest.mark.parametrize("workload", ["dnn_digits", "vgg_digits"])
def test_tensorflow_workers_train_as_one_torch_worker_does(workload: str, folder: Path) -> None:
    pytest.importorskip("tensorflow")
    case = case_of(
        workload=workload,
        ranks=2,
        transport="shm",
        collective="ring",
        strategy="sync",
        steps=STEPS,
        framework="tensorflow",
    )
    assert_equivalent(launch(folder / f"tensorflow-{workload}", case), reference(workload, folder))


TENSORFLOW_ARMS: dict[str, dict[str, Any]] = {
    "ring over gRPC": {"transport": "tensorflow-grpc", "strategy": "sync"},
    "MultiWorkerMirroredStrategy": {"transport": "tensorflow-mirrored", "strategy": "sync", "transport.fusion_mib": 64},
    "a parameter server on every rank": {"transport": "tensorflow-grpc", "strategy": "tensorflow_parameter_server"},
    "Horovod": {"transport": "horovod", "strategy": "sync"},
}
PARTS = {b"input", b"forward", b"backward", b"queue", b"communication", b"wait", b"update", b"step", b"loss"}


@pytest.mark.parametrize("arm", TENSORFLOW_ARMS)
def test_every_way_of_tensorflow_trains_as_one_torch_worker_does_and_shows_the_same_parts_of_a_step(
    arm: str, folder: Path
) -> None:
    pytest.importorskip("tensorflow")
    outcome = launch(folder / arm, case_of(ranks=2, framework="tensorflow", steps=STEPS, **TENSORFLOW_ARMS[arm]))
    assert_equivalent(outcome, reference("dnn_digits", folder))
    for events in outcome.events:
        assert set(events["event"]) >= PARTS


def test_one_parameter_server_of_tensorflow_steps_for_all_ranks(folder: Path) -> None:
    pytest.importorskip("tensorflow")
    fields: dict[str, Any] = {
        "transport": "tensorflow-grpc",
        "strategy": "tensorflow_parameter_server",
        "strategy.servers": 1,
    }
    outcome = launch(folder / "server", case_of(ranks=4, steps=STEPS, **fields))
    assert_equivalent(outcome, reference("dnn_digits", folder))


class Forgetful(Sync):
    """Leaves out rank 1's gradients in one step."""

    def finish(self, update: Any) -> None:
        if self.step == 5 and self.context.rank == 1:
            for gradient in self.gradients:
                gradient.fill(0)
        super().finish(update)


def test_one_forgotten_exchange_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: the tolerance is far below the smallest mistake."""
    stand_in(monkeypatch, "strategy", "sync", Forgetful)
    outcome = launch(
        folder / "forgetful", case_of(ranks=2, transport="shm", collective="ring", strategy="sync", steps=STEPS)
    )
    base = reference("dnn_digits", folder)
    assert relative_difference(outcome.values("loss"), base.values("loss")) > 100 * TOLERANCE
    assert relative_difference(outcome.parameters, base.parameters) > 100 * TOLERANCE


class Deaf(ParameterServer):
    """Leaves out the gradients of the other workers in one step."""

    def _sum(self, index: int) -> None:
        if self.step == 5:
            own_gradients = self.gradients[index].copy()
            super()._sum(index)
            np.copyto(self.gradients[index], own_gradients)
        else:
            super()._sum(index)


def test_one_forgotten_worker_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "strategy", "parameter_server", Deaf)
    outcome = launch(
        folder / "deaf",
        case_of(
            ranks=2, transport="shm", collective="ring", strategy="parameter_server", mechanism="zero_copy", steps=STEPS
        ),
    )
    assert relative_difference(outcome.parameters, reference("dnn_digits", folder).parameters) > 100 * TOLERANCE


def test_replicas_that_drift_apart_fail_the_launch_by_a_check() -> None:
    def body(context: RankContext) -> None:
        context.seed += context.rank  # local_only: nothing makes the replicas equal again
        train.run(context)
        assert [check["name"] for check in context.checks if not check["passed"]] == ["initial_parameters"]

    assert run_ranks(case_of(ranks=2), body) == ["", ""]


def test_a_difference_of_unequal_or_broken_curves_is_infinite() -> None:
    curve = np.array([2.0, 1.0])
    assert relative_difference(curve, curve) == 0
    assert relative_difference(curve + 0.5, curve) == 0.25
    for broken in (curve[:1], np.array([2.0, np.nan]), curve[:0]):
        assert relative_difference(broken, curve) == float("inf")
