"""Collectives over some ranks of a transport: right in every part, beside each other and beside the whole, counted
apart, over sends and mapped memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch  # noqa: F401  imported before the ranks are forked, as their parent does

from scaleproof.collectives.group import Group, open_group
from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import TransportError
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec.case import CollectiveCase
from scaleproof.transports.contract import Array
from tests.short_form import ring_case

PARTS = ((3, 0, 4), (1, 2))
"""Of 5 ranks: uneven, interleaved, numbered in another order."""
TRANSPORTS = ["tcp", "shm", "ucx", "grpc", "grpc+shm", "gloo"]
COUNTS = (0, 1, 17, 70_001)


def case(transport: str, algorithm: str = "ring", tracing: str = "none", ranks: int = 5) -> CollectiveCase:
    return ring_case(transport, ranks, collective=algorithm, tracing=tracing)


def opened(context: RankContext) -> tuple[Group, Group, tuple[int, ...]]:
    """The whole, this rank's part, and its members."""
    whole = open_group(context)
    assert isinstance(whole, Group)
    members = next(part for part in PARTS if context.rank in part)
    return whole, whole.part(members), members


def contribution(rank: int, count: int) -> Array:
    return np.random.default_rng(rank).integers(-1000, 1000, count).astype(np.float32)


def check(part: Group, members: tuple[int, ...], count: int, registered: bool) -> None:
    """Every operation against NumPy; `registered`: buffers of the transport's own memory."""

    def memory(values: Array) -> Array:
        if not registered:
            return values.copy()
        buffer = part.allocate(values.nbytes).view(np.float32)
        buffer[:] = values
        return buffer

    mine, block = members[part.rank], slice(part.rank * count, (part.rank + 1) * count)
    total = np.add.reduce([contribution(rank, count) for rank in members])
    buffer = memory(contribution(mine, count))
    part.all_reduce(buffer).wait()
    assert np.array_equal(buffer, total)
    buffer = memory(contribution(mine, count))
    part.broadcast(buffer, len(members) - 1).wait()
    assert np.array_equal(buffer, contribution(members[-1], count))
    target = memory(np.zeros(count * len(members), np.float32))
    part.all_gather(memory(contribution(mine, count)), target).wait()
    assert np.array_equal(target, np.concatenate([contribution(rank, count) for rank in members]))
    target = memory(np.zeros(count, np.float32))
    part.reduce_scatter(memory(contribution(mine, count * len(members))), target).wait()
    assert np.array_equal(target, np.add.reduce([contribution(rank, count * len(members)) for rank in members])[block])


@pytest.mark.parametrize(
    ("transport", "algorithm"), [*((name, "ring") for name in TRANSPORTS), ("tcp", "tree"), ("shm", "halving_doubling")]
)
def test_every_operation_in_every_part_gives_what_numpy_does(transport: str, algorithm: str) -> None:
    def body(context: RankContext) -> None:
        whole, part, members = opened(context)
        assert (part.world_size, members[part.rank]) == (len(members), context.rank)
        for count in COUNTS:
            for registered in (False, True):
                check(part, members, count, registered)
        part.barrier()
        buffer = contribution(context.rank, 333)
        whole.all_reduce(buffer).wait()
        assert np.array_equal(buffer, np.add.reduce([contribution(rank, 333) for rank in range(5)]))
        whole.barrier()
        part.close()
        whole.barrier()
        whole.close()

    assert run_ranks(case(transport, algorithm), body, 60) == [""] * 5


@pytest.mark.parametrize("transport", ["tcp", "shm", "gloo"])
def test_calls_of_the_whole_and_of_its_parts_may_be_under_way_together(transport: str) -> None:
    """Both talk between the same pairs of ranks, and no message says whose it is."""

    def body(context: RankContext) -> None:
        whole, part, members = opened(context)
        buffers = [contribution(context.rank, count) for count in (70_001, 50_021, 5, 9973)]
        groups = [(whole, tuple(range(5))), (part, members)] * 2
        handles = [group.all_reduce(buffer) for (group, _), buffer in zip(groups, buffers, strict=True)]
        for handle in handles[1:3] if context.rank % 2 else handles:
            handle.wait()
        for handle in reversed(handles):
            handle.wait()
        for (_, ranks), buffer in zip(groups, buffers, strict=True):
            assert np.array_equal(buffer, np.add.reduce([contribution(rank, buffer.size) for rank in ranks]))
        whole.barrier()
        whole.close()

    assert run_ranks(case(transport), body, 30) == [""] * 5


@pytest.mark.parametrize("transport", ["tcp", "shm"])
def test_a_part_counts_what_it_sends_and_the_whole_counts_it_too(transport: str) -> None:
    def body(context: RankContext) -> None:
        whole, part, members = opened(context)
        before = whole.traffic.nbytes
        part.all_reduce(contribution(context.rank, 600)).wait()
        assert part.traffic.nbytes == whole.traffic.nbytes - before == 2400 * 2 * (len(members) - 1) // len(members)
        whole.all_reduce(contribution(context.rank, 500)).wait()
        assert part.traffic.nbytes == 2400 * 2 * (len(members) - 1) // len(members)
        whole.barrier()
        whole.close()

    assert run_ranks(case(transport), body, 30) == [""] * 5


@pytest.mark.parametrize(
    ("transport", "names"), [("tcp", ("send", "receive", "receive_reduce")), ("shm", ("reduce", "pull", "push"))]
)
def test_traced_messages_of_a_part_name_the_ranks_of_the_launch(transport: str, names: tuple[str, ...]) -> None:
    def body(context: RankContext) -> None:
        whole, part, members = opened(context)
        whole.barrier()
        context.trace.clear()
        part.all_reduce(part.allocate(4000).view(np.float32)).wait()
        peers = [peer for event, *_, peer in context.trace if event in names]
        assert peers and set(peers) <= set(members) - {context.rank}
        whole.barrier()
        whole.close()

    assert run_ranks(case(transport, tracing="full"), body, 30) == [""] * 5


@pytest.mark.parametrize("members", [(1, 2), (0, 0), (0, 9)])
def test_a_part_without_its_rank_or_with_ranks_that_are_not_there_is_one_clear_line(members: tuple[int, ...]) -> None:
    def body(context: RankContext) -> None:
        group = open_group(context)
        assert isinstance(group, Group)
        with pytest.raises(TransportError, match="cannot have a part with the ranks"):
            group.part(members)
        group.close()

    assert run_ranks(case("tcp", ranks=1), body, 30) == [""]
