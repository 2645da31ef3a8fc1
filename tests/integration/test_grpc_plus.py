"""gRPC+X: a request over gRPC, a tensor over X; what arrives, what is counted, what a mistake does. Over MPI the
supervisor's launches run it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.arms import SIZES, Arm, transport_arms
from benchmarks.tuning import grid
from scaleproof.core.context import RankContext
from scaleproof.core.record_schema import Record
from scaleproof.core.transport_errors import TransportError
from scaleproof.launch.supervisor import run_plan
from scaleproof.programs import collective, transfer
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.record.store import Store
from scaleproof.spec import registry
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.stats.training_equivalence import relative_difference
from scaleproof.transports.contract import PointToPoint
from scaleproof.transports.grpc_plus.grpc_plus import REQUEST_WORDS, WINDOW_MIB, GrpcPlus
from tests.integration._training import case_of as training
from tests.integration._training import launch as alone
from tests.integration.guests import guest_case, need_guests
from tests.short_form import ring_case

COUNT, REQUEST = 5, 8 * REQUEST_WORDS
STEPS, TOLERANCE = 8, 1e-5


def case() -> Any:
    return ring_case("grpc+shm")


def open_transport(context: RankContext) -> GrpcPlus:
    return cast(GrpcPlus, registry.load("transport", "grpc+shm").connect(context))


def test_a_tensor_for_which_the_window_has_no_room_arrives_as_a_message() -> None:
    def body(context: RankContext) -> None:
        transport, nbytes = open_transport(context), 1 << 20
        held = [transport.allocate(WINDOW_MIB << 19) for _ in range(2)]
        target = np.empty(nbytes, np.uint8)
        for number in range(COUNT):
            if context.rank == 0:
                transport.send(np.full(nbytes, number, np.uint8), 1).wait()
            else:
                landing = target if number % 2 else held[0][:nbytes]
                transport.recv(landing, 0).wait()
                assert (landing == number).all()
        counts = context.facts["grpc_plus"]
        assert (counts["staged"], counts["without_room"]) == (0, COUNT // 2 if context.rank else 0)
        transport.barrier()
        transport.close()

    assert run_ranks(case(), body) == ["", ""]


def test_a_case_sets_the_size_of_the_window() -> None:
    def body(context: RankContext) -> None:
        transport = open_transport(context)
        held = transport.allocate(WINDOW_MIB << 20)
        target = transport.allocate(WINDOW_MIB << 20)
        exchange(transport, target[: 1 << 20])
        counts = context.facts["grpc_plus"]
        assert (counts["staged"], counts["without_room"], held.nbytes) == (0, 0, WINDOW_MIB << 20)
        transport.barrier()
        transport.close()

    def exchange(transport: GrpcPlus, target: np.ndarray) -> None:
        if transport.rank:
            transport.recv(target, 0).wait()
        else:
            transport.send(target, 1).wait()

    assert run_ranks(ring_case("grpc+shm", **{"transport.window_mib": 2 * WINDOW_MIB}), body) == ["", ""]


@pytest.mark.parametrize("operation", ["transfer", "all_reduce"])
def test_the_largest_registered_buffers_of_make_bench_lie_in_the_window(operation: str) -> None:
    arm = Arm("grpc+shm", 2, operation)
    [setting] = grid(arm)
    only_largest = {"sizes": [SIZES[-1]], "iterations": 1, "warmup": 0}
    planned = transport_arms()[arm].changed({**setting.options, **only_largest})
    program = transfer if operation == "transfer" else collective

    def body(context: RankContext) -> None:
        program.run(context)
        assert context.checks and all(check["passed"] for check in context.checks)
        counts = context.facts["grpc_plus"]
        assert (counts["staged"], counts["without_room"]) == (0, 0)
        assert counts["tensor_nbytes"] >= SIZES[-1]

    assert run_ranks(planned, body, 60) == ["", ""]


@pytest.mark.parametrize("inside", [True, False], ids=["inside the window", "elsewhere"])
def test_every_tensor_is_asked_for_once_and_only_those_elsewhere_are_staged(inside: bool) -> None:
    def body(context: RankContext) -> None:
        transport, nbytes = open_transport(context), 4096
        if context.rank == 0:
            for number in range(COUNT):
                transport.send(np.full(nbytes, number, np.uint8), 1).wait()
            expected = {
                "requests": 0,
                "request_nbytes": 0,
                "tensors": COUNT,
                "tensor_nbytes": COUNT * nbytes,
                "staged": 0,
                "staged_nbytes": 0,
                "without_room": 0,
            }
        else:
            target = transport.allocate(nbytes) if inside else np.empty(nbytes, np.uint8)
            for number in range(COUNT):
                transport.recv(target, 0).wait()
                assert (target == number).all()
            staged = 0 if inside else COUNT
            expected = {
                "requests": COUNT,
                "request_nbytes": COUNT * REQUEST,
                "tensors": 0,
                "tensor_nbytes": 0,
                "staged": staged,
                "staged_nbytes": staged * nbytes,
                "without_room": 0,
            }
        assert context.facts["grpc_plus"] == expected
        transport.barrier()
        transport.close()

    assert run_ranks(case(), body) == ["", ""]


def test_nothing_moves_before_it_is_asked_for() -> None:
    def body(context: RankContext) -> None:
        transport = open_transport(context)
        context.rendezvous.exchange("open", context.rank, 2, True)
        if context.rank == 0:
            sending = transport.send(np.ones(8, np.uint8), 1)
            assert not any(sending.test() for _ in range(1000)) and transport.counts["tensors"] == 0
            context.rendezvous.exchange("ask", 0, 2, True)
            sending.wait()
            assert transport.counts["tensors"] == 1
        else:
            context.rendezvous.exchange("ask", 1, 2, True)
            transport.recv(np.empty(8, np.uint8), 0).wait()
        transport.barrier()
        transport.close()

    assert run_ranks(case(), body) == ["", ""]


def test_a_request_for_another_size_is_an_error_of_the_sender() -> None:
    def body(context: RankContext) -> None:
        transport: PointToPoint = open_transport(context)
        if context.rank == 0:
            with pytest.raises(TransportError, match="requests tensor 0 of 16 bytes; rank 0 has tensor 0 of 8 bytes"):
                transport.send(np.ones(8, np.uint8), 1).wait()
        else:
            with pytest.raises(TransportError):
                transport.recv(np.empty(16, np.uint8), 0).wait()
        transport.close()

    assert run_ranks(case(), body) == ["", ""]


WAYS = [
    ("grpc+mpi", "sync_overlap", "ring"),
    ("grpc+mpi", "parameter_server", "ring"),
    ("mpi", "sync_overlap", "ring"),
    ("grpc+shm", "parameter_server", "ring"),
]


@cache
def records(folder: Path) -> dict[tuple[str, str, str], Record]:
    """A launch of each, all with one seed."""
    common = {"ranks": 2, "steps": STEPS, "strategy.bucket_mib": 0.001}
    cases = [
        training(
            **common,
            arm=f"{name}-{strategy}",
            transport=name,
            launcher=registry.get("transport", name).launcher,
            strategy=strategy,
            collective=algorithm,
        )
        for name, strategy, algorithm in WAYS
    ]
    run_plan(
        [PlannedLaunch(planned, 0, 0, order) for order, planned in enumerate(cases)], folder, size="ci", deadline_s=60
    )
    return {
        (record.case.transport or "", str(record.case.value("strategy")), record.case.collective): record
        for record in Store(folder).records()
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plus")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way))
def test_workers_over_it_train_as_one_does(way: tuple[str, str, str], folder: Path) -> None:
    record = records(folder)[way]
    assert record.status == "ok", record.failure
    samples = Store(folder).samples(record).to_pandas()
    losses = samples[(samples["event"] == "loss") & (samples["rank"] == 0)].sort_values("step")["value"].to_numpy()
    assert relative_difference(losses, alone(folder / "alone", training(steps=STEPS)).values("loss")) <= TOLERANCE


def test_between_two_nodes_tensors_go_over_rdma(tmp_path: Path) -> None:
    need_guests()
    planned = guest_case(arm="plus", program="collective", transport="grpc+rdma", sizes=[65536, 1 << 20], iterations=3)
    run_plan([PlannedLaunch(planned, 0, 0, 0)], tmp_path, size="ci", deadline_s=120)
    [record] = Store(tmp_path).records()
    assert record.status == "ok" and record.checks and all(check.passed for check in record.checks), record.failure
    counts, verbs = ([rank.facts[name] for rank in record.ranks] for name in ("grpc_plus", "verbs"))
    assert counts[0]["requests"] == counts[1]["tensors"] > 0 and counts[1]["requests"] == counts[0]["tensors"]
    assert (
        counts[0]["tensor_nbytes"] > 2 * 65536 and counts[0]["staged"] == 0 and all(verb["software"] for verb in verbs)
    )


def test_what_one_rank_asks_for_the_other_delivers(folder: Path) -> None:
    for way in WAYS:
        if not way[0].startswith("grpc+"):
            continue
        counts = [rank.facts["grpc_plus"] for rank in records(folder)[way].ranks]
        assert counts[0]["requests"] == counts[1]["tensors"] > STEPS and counts[1]["requests"] == counts[0]["tensors"]
        assert all(count["request_nbytes"] == REQUEST * count["requests"] for count in counts)
