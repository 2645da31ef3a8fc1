"""Checks of the device's mechanisms over verbs: the same code as over shared memory, the same counts but for RPC's
control messages, which are two-sided."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import Recorder, read_events
from scaleproof.core.rendezvous import Rendezvous
from scaleproof.programs import train
from scaleproof.rank.parent import preload
from scaleproof.rank.unsupervised_ranks import run_some_ranks
from scaleproof.remote.tensor_channel import Edge, Mechanism, TransferCounts, open_channel
from scaleproof.spec.case import TrainCase
from scaleproof.stats.training_equivalence import relative_difference
from tests.integration.rdma.checks import ThisNode, case_of, check, connect
from tests.short_form import case_from

COUNT = 12
SENT = {"tensors": COUNT, "nbytes": 4000 * COUNT}
COPIED = {"copies": COUNT, "copied_bytes": 4000 * COUNT}
COSTS: dict[Mechanism, tuple[dict[str, int], dict[str, int]]] = {
    "messages": (SENT | {"messages": COUNT}, {}),
    "copy": (SENT | COPIED | {"messages": COUNT, "writes": COUNT}, COPIED | {"releases": COUNT}),
    "zero_copy": (SENT | {"messages": COUNT, "writes": COUNT}, {"releases": COUNT}),
    "dynamic": (
        SENT | {"messages": COUNT, "writes": COUNT},
        {"messages": COUNT, "reads": COUNT, "round_trips": COUNT, "releases": COUNT},
    ),
    # One correction of the shape; requests and corrections are two-sided and need no acknowledgement of ours.
    "rpc": (
        SENT | COPIED | {"messages": COUNT + 1, "writes": COUNT},
        {"messages": COUNT + 1, "round_trips": COUNT + 1},
    ),
}
"""What that many tensors of 4000 bytes cost the sender and the receiver."""

ALONE = {
    "ranks": 1,
    "strategy": "local_only",
    "transport": None,
    "collective": "native",
    "strategy.mechanism": "messages",
    "interface": "lo",
    "transport.region_mib": None,
}


@check
def mechanisms_carry_tensors_at_the_documented_cost(this_node: ThisNode) -> None:
    this_node.succeed(_carry, 2, 60)


def _carry(context: RankContext) -> None:
    transport = connect(context)
    for mechanism, expected in COSTS.items():
        edge, varying = Edge("fixed", 0, 1, (1000,)), Edge("varying", 0, 1, (300, 40), static=False)
        channel = open_channel(
            mechanism, transport, [edge] if mechanism in ("copy", "zero_copy") else [edge, varying], context
        )
        for number in range(COUNT):
            for chosen in channel.edges:
                shape = (
                    edge.shape
                    if chosen is edge
                    else tuple(int(size) for size in np.random.default_rng(number).integers(0, (301, 41)))
                )
                if context.rank == 0:
                    array = channel.outgoing(chosen, None if chosen.static else shape)
                    array[...] = number
                    channel.send(chosen, array).wait()
                else:
                    arrived = channel.recv(chosen).wait()
                    assert arrived.shape == shape and (arrived == number).all(), (
                        f"{mechanism}: tensor {number} of {chosen.name}"
                    )
                    del arrived
                    channel.release(chosen)
        transport.barrier()
        counted = asdict(channel.counts.of(edge))
        assert counted == asdict(TransferCounts(**expected[context.rank])), f"{mechanism}: {counted}"
        channel.close()
    transport.close()


@check
def a_parameter_server_over_static_placement_trains_as_one_worker_does(this_node: ThisNode) -> None:
    _train(this_node, "zero_copy")


@check
def a_parameter_server_over_rpc_trains_as_one_worker_does(this_node: ThisNode) -> None:
    _train(this_node, "rpc")


@check
def a_parameter_server_over_dynamic_allocation_trains_as_one_worker_does(this_node: ThisNode) -> None:
    _train(this_node, "dynamic")


def _train(this_node: ThisNode, mechanism: Mechanism) -> None:
    case = case_from(
        {
            "suite": "test",
            "experiment": "rdma",
            "arm": mechanism,
            "program": "train",
            "ranks": 2,
            "transport": "rdma",
            "collective": "ring",
            "interface": case_of(2).interface,
            "transport.region_mib": 64,
            "strategy": "parameter_server",
            "strategy.mechanism": mechanism,
            "workload": "dnn_digits",
            "workload.data": "digits",
            "minibatch": 64,
            "steps": 8,
            "warmup": 0,
            "learning_rate": 0.05,
        }
    )
    mine = [rank for rank in range(2) if rank * this_node.nodes // 2 == this_node.node]
    preload(case)  # as the launcher does: each rank would import torch by itself
    errors = [
        error
        for error in run_some_ranks(
            case, mine, this_node.shared, this_node.address, partial(_beside_one_worker, folder=this_node.shared), 120
        )
        if error
    ]
    assert not errors, "\n".join(errors)


def _beside_one_worker(context: RankContext, folder: Path) -> None:
    train.run(context)
    assert all(check["passed"] for check in context.checks), context.checks
    alone = folder / f"alone-{context.rank}"
    (alone / "rendezvous").mkdir(parents=True)
    assert isinstance(context.case, TrainCase)
    single = case_from(context.case.model_dump() | ALONE)
    single_worker = replace(
        context,
        case=single,
        rank=0,
        world_size=1,
        folder=alone,
        rendezvous=Rendezvous(alone / "rendezvous"),
        recorder=Recorder(alone / "events"),
    )
    train.run(single_worker)
    assert relative_difference(_losses(context), _losses(single_worker)) <= 1e-5


def _losses(context: RankContext) -> np.ndarray:
    rows = read_events(context.recorder.path)
    losses: np.ndarray = rows["value"][rows["event"] == b"loss"]
    return losses
