"""Every schedule computes its collective exactly, in causal rounds, with no more bytes than theory says."""

from __future__ import annotations

import random
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.collectives.double_binary_tree import trees
from scaleproof.collectives.mapped_plan import Plan, Step, accesses, compile_plan
from scaleproof.collectives.message_schedule import Action, Message, messages, schedule_of
from scaleproof.spec import registry
from scaleproof.spec.case import Operation

MAPPED = ["ring", "halving_doubling", "tree", "hierarchical", "chain", "double_binary_tree"]
"""Algorithms of which no rank sends what it receives in the same round."""
ALGORITHMS = [*MAPPED, "recursive_doubling"]
OPERATIONS: list[Operation] = ["all_reduce", "reduce_scatter", "all_gather", "broadcast"]

algorithms, mapped = st.sampled_from(ALGORITHMS), st.sampled_from(MAPPED)
operations = st.sampled_from(OPERATIONS)
world_sizes = st.integers(1, 9)


def laid_out(algorithm: str, world_size: int) -> str:
    """The algorithm; a hierarchical one gets the smallest number of nodes with several ranks each."""
    return schedule_of(algorithm, next((nodes for nodes in range(2, world_size) if world_size % nodes == 0), 1))


def expected(operation: Operation, start: np.ndarray, root: int) -> list[tuple[int, slice, np.ndarray]]:
    """Expected result of the collective: (rank, part, values)."""
    world_size, count = start.shape
    size = count // world_size
    blocks = [slice(r * size, (r + 1) * size) for r in range(world_size)]
    if operation == "all_reduce":
        return [(r, slice(None), start.sum(axis=0)) for r in range(world_size)]
    if operation == "broadcast":
        return [(r, slice(None), start[root]) for r in range(world_size)]
    if operation == "reduce_scatter":
        return [(r, blocks[r], start.sum(axis=0)[blocks[r]]) for r in range(world_size)]
    return [(r, blocks[owner], start[owner, blocks[owner]]) for r in range(world_size) for owner in range(world_size)]


def elements(operation: Operation, world_size: int, size: int) -> int:
    return size * world_size if operation in ("reduce_scatter", "all_gather") else size


def apply(state: np.ndarray, message: Message, source: np.ndarray) -> None:
    part = slice(message.start, message.stop)
    if message.action is Action.REDUCE:
        state[message.destination, part] += source[message.source, part]
    else:
        state[message.destination, part] = source[message.source, part]


@given(algorithms, operations, world_sizes, st.integers(0, 70), st.integers(0, 8), st.integers(0, 2**32))
def test_every_schedule_computes_its_collective_exactly(
    algorithm: str, operation: Operation, world_size: int, size: int, root: int, seed: int
) -> None:
    count, root = elements(operation, world_size, size), root % world_size
    start = np.random.default_rng(seed).integers(-(2**40), 2**40, (world_size, count))
    state = start.copy()
    for _, together in groupby(
        messages(laid_out(algorithm, world_size), operation, world_size, count, root=root),
        key=lambda message: message.round,
    ):
        before = state.copy()
        for message in together:
            apply(state, message, before)
    for rank, part, values in expected(operation, start, root):
        np.testing.assert_array_equal(state[rank, part], values)


@given(algorithms, operations, world_sizes, st.integers(0, 70), st.integers(0, 8))
def test_rounds_are_ordered_and_their_messages_independent(
    algorithm: str, operation: Operation, world_size: int, size: int, root: int
) -> None:
    count = elements(operation, world_size, size)
    all_messages = list(messages(laid_out(algorithm, world_size), operation, world_size, count, root=root % world_size))
    assert [message.round for message in all_messages] == sorted(message.round for message in all_messages)
    for _, together in groupby(all_messages, key=lambda message: message.round):
        sent, received = np.zeros((world_size, count), bool), np.zeros((world_size, count), bool)
        for message in together:
            assert message.source != message.destination
            part = slice(message.start, message.stop)
            assert not received[message.destination, part].any()
            sent[message.source, part], received[message.destination, part] = True, True
        assert algorithm not in MAPPED or not (sent & received).any()


@given(algorithms, operations, world_sizes, st.integers(0, 70), st.integers(0, 8), st.integers(0, 8))
def test_the_plan_of_one_rank_is_the_part_of_the_whole_that_concerns_it(
    algorithm: str, operation: Operation, world_size: int, size: int, root: int, rank: int
) -> None:
    count, root, rank, algorithm = (
        elements(operation, world_size, size),
        root % world_size,
        rank % world_size,
        laid_out(algorithm, world_size),
    )
    of_all_ranks = messages(algorithm, operation, world_size, count, root=root)
    own = messages(algorithm, operation, world_size, count, root=root, rank=rank)
    assert sorted(own, key=repr) == sorted(
        (message for message in of_all_ranks if rank in (message.source, message.destination)), key=repr
    )


@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling", "hierarchical"])
@pytest.mark.parametrize("world_size", [2, 4, 8, 16])
def test_bandwidth_optimal_algorithms_send_2n_times_p_minus_1_over_p(algorithm: str, world_size: int) -> None:
    count = 64 * world_size
    for rank in range(world_size):
        sent = sum(
            m.stop - m.start
            for m in messages(laid_out(algorithm, world_size), "all_reduce", world_size, count, rank=rank)
            if m.source == rank
        )
        assert sent == 2 * count * (world_size - 1) // world_size


@pytest.mark.parametrize(("world_size", "nodes"), [(4, 2), (8, 2), (8, 4), (12, 3)])
def test_hierarchical_messages_between_nodes_are_those_of_a_ring_over_nodes(world_size: int, nodes: int) -> None:
    """Every node sends 2n(N-1)/N, in equal parts by its ranks, and only to the next node."""
    count, size = 64 * world_size, world_size // nodes
    for rank in range(world_size):
        sent = [
            message
            for message in messages(f"hierarchical/{nodes}", "all_reduce", world_size, count, rank=rank)
            if message.source == rank
        ]
        crossing = [message for message in sent if message.destination // size != rank // size]
        assert sum(message.stop - message.start for message in crossing) * size == 2 * count * (nodes - 1) // nodes
        assert {message.destination for message in crossing} == {(rank + size) % world_size}


def test_exactly_the_collectives_that_say_so_send_what_they_receive_in_a_round() -> None:
    assert [*MAPPED, *registry.with_trait("collective", "exchanges")] == ALGORITHMS
    assert sorted(ALGORITHMS) == sorted(set(registry.names("collective")) - {"native"})


@pytest.mark.parametrize("world_size", range(2, 20))
def test_every_rank_is_an_inner_node_of_at_most_one_of_the_two_trees(world_size: int) -> None:
    inner = [{edge.parent for edge in edges} for edges in trees(world_size)]
    roots = [set(range(world_size)) - {edge.child for edge in edges} for edges in trees(world_size)]
    assert [len(root) for root in roots] == [1, 1]
    assert len(inner[0] & inner[1]) <= 1, "of an even number of ranks none, of an odd number at most the root"
    depth = max(edge.depth for edges in trees(world_size) for edge in edges)
    assert depth <= (world_size - 1).bit_length()


def test_ranks_that_do_not_fill_the_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="5 ranks do not fill 2 nodes evenly"):
        list(messages("hierarchical/2", "all_reduce", 5, 10))


@given(mapped, operations, world_sizes, st.integers(0, 40), st.integers(0, 8))
def test_accesses_never_race_and_every_wait_is_for_something_earlier(
    algorithm: str, operation: Operation, world_size: int, size: int, root: int
) -> None:
    count, root = elements(operation, world_size, size), root % world_size
    blocks = world_size if count != size else 1
    accesses_of_all = (
        accesses(laid_out(algorithm, world_size), operation, world_size, count, root, blocks) if count else ()
    )
    before: list[set[int]] = []
    for index, access in enumerate(accesses_of_all):
        own = [
            number
            for number in range(index)
            if accesses_of_all[number].rank == access.rank and accesses_of_all[number].depth <= access.depth
        ]
        for need in access.needs:
            assert accesses_of_all[need].depth + (accesses_of_all[need].rank != access.rank) <= access.depth
        before.append(set().union(*(before[number] | {number} for number in (*access.needs, *own))))
        touched = (access.source, access.peer if access.rank == access.source else access.rank)
        for number in set(range(index)) - before[index]:
            other = accesses_of_all[number]
            target = other.peer if other.rank == other.source else other.rank
            overlap = other.start < access.stop and access.start < other.stop
            assert not (overlap and (target in touched or other.source == touched[1])), (other, access)


@given(mapped, operations, st.integers(2, 5), st.integers(1, 40_000), st.sampled_from([1, 2, 8]), st.booleans())
def test_all_ranks_agree_on_every_counter(
    algorithm: str, operation: Operation, world_size: int, size: int, itemsize: int, staged: bool
) -> None:
    count = elements(operation, world_size, size)
    staged = staged and operation in ("all_reduce", "broadcast")
    algorithm = laid_out(algorithm, world_size)
    plans = [
        compile_plan(algorithm, operation, world_size, count, itemsize, 0, rank, staged) for rank in range(world_size)
    ]
    assert len({plan.totals for plan in plans}) == 1
    for rank, plan in enumerate(plans):
        assert sum(step.kind in ("pull", "push", "reduce") for step in plan.steps) == plan.totals[rank]
        for wait in (*(wait for step in plan.steps for wait in step.waits), *plan.last):
            assert wait.peer != rank
            assert wait.number <= (plan.shape.segments if wait.ready else plan.totals[wait.peer])


class Ranks:
    """All ranks of a compiled plan in one process, each with its buffer, staging slots and counters. The caller decides
    which rank makes the next step."""

    def __init__(self, plans: list[Plan], start: np.ndarray, staged: list[bool]) -> None:
        self.plans, self.staged = plans, staged
        self.buffers = start.copy()
        self.slots = [np.full((plan.slots, plan.shape.size(0)), -1) for plan in plans]
        self.position = [0] * len(plans)
        self.finished = [0] * len(plans)
        self.ready = [0 if stage else plans[0].shape.segments for stage in staged]

    def can(self, rank: int) -> bool:
        """Whether the next step of a rank can run now (False at the end of its program)."""
        steps, at = self.plans[rank].steps, self.position[rank]
        return at < len(steps) and all(
            (self.ready if wait.ready else self.finished)[wait.peer] >= wait.number for wait in steps[at].waits
        )

    def step(self, rank: int) -> None:
        step, shape = self.plans[rank].steps[self.position[rank]], self.plans[rank].shape
        self.position[rank] += 1
        if step.kind in ("stage_in", "stage_out"):
            slot = self.slots[rank][step.segment % len(self.slots[rank])]
            width = shape.slice(step.segment)
            for at in range(step.start * width, step.stop * width):
                position = shape.position(step.segment, at)
                if step.kind == "stage_in":
                    slot[at] = self.buffers[rank, position]
                else:
                    self.buffers[rank, position] = slot[at]
            self.ready[rank] += step.kind == "stage_in"
            return
        own, other = self.own(rank, step), self.view(step.peer, step)
        if step.kind == "reduce":
            own += other
        elif step.kind == "push":
            other[:] = own
        else:
            own[:] = other
        self.finished[rank] += 1

    def own(self, rank: int, step: Step) -> np.ndarray:
        """A block that no other rank accesses is not in the slot."""
        plan = self.plans[rank]
        in_buffer = self.staged[rank] and (
            step.start // plan.shape.slice(step.segment) not in plan.staged[step.segment]
        )
        return self.in_buffer(rank, step) if in_buffer else self.view(rank, step)

    def view(self, rank: int, step: Step) -> np.ndarray:
        if self.staged[rank]:
            slots = self.slots[rank]
            return slots[step.segment % len(slots)][step.start : step.stop]
        return self.in_buffer(rank, step)

    def in_buffer(self, rank: int, step: Step) -> np.ndarray:
        first = self.plans[rank].shape.position(step.segment, step.start)
        return self.buffers[rank, first : first + step.stop - step.start]


@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling"])
def test_two_ranks_stage_only_what_the_other_one_adds(algorithm: str) -> None:
    """So that plain buffers cost two passes over half an array more than registered ones, which is their bound."""
    for rank in range(2):
        plan = compile_plan(algorithm, "all_reduce", 2, 1 << 20, 4, 0, rank, True)
        blocks = {tuple(range(step.start, step.stop)) for step in plan.steps if step.kind.startswith("stage")}
        own = {step.start // plan.shape.slice(step.segment) for step in plan.steps if step.kind == "reduce"}
        assert plan.shape.blocks == 2 and len(own) == 1 and blocks == {(1 - own.pop(),)}


@settings(deadline=None)
@given(
    mapped,
    operations,
    st.integers(2, 6),
    st.integers(1, 1500),
    st.integers(0, 5),
    st.randoms(use_true_random=False),
    st.data(),
)
def test_compiled_plans_are_right_in_whatever_order_the_ranks_run(
    algorithm: str,
    operation: Operation,
    world_size: int,
    size: int,
    root: int,
    turns: random.Random,
    data: st.DataObject,
) -> None:
    count, root = elements(operation, world_size, size), root % world_size
    stageable = operation in ("all_reduce", "broadcast")
    staged = [stageable and data.draw(st.booleans(), label=f"rank {rank} is staged") for rank in range(world_size)]
    algorithm = laid_out(algorithm, world_size)
    # An itemsize of 4 KiB makes many segments out of few elements.
    plans = [
        compile_plan(algorithm, operation, world_size, count, 4096, root, rank, staged[rank])
        for rank in range(world_size)
    ]
    start = np.random.default_rng(size).integers(-1000, 1000, (world_size, count))
    ranks = Ranks(plans, start, staged)
    while runnable := [rank for rank in range(world_size) if ranks.can(rank)]:
        rank = turns.choice(runnable)
        for _ in range(turns.randrange(1, 40)):
            if ranks.can(rank):
                ranks.step(rank)
    assert [len(plan.steps) for plan in plans] == ranks.position, "the ranks wait for each other for ever"
    for rank, part, values in expected(operation, start, root):
        np.testing.assert_array_equal(ranks.buffers[rank, part], values)
