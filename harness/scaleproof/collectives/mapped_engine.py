"""Executes a collective directly on the ranks' buffers when all of them can be addressed: no message, no copy but what
the schedule asks for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from scaleproof.collectives.mapped_plan import Plan, Step, Wait, compile_plan
from scaleproof.collectives.message_schedule import messages
from scaleproof.spec.case import Operation
from scaleproof.transports._buffers import CACHE_LINE
from scaleproof.transports.contract import UFUNCS, Array, Handle, Mapped, ReduceOperation

ENTERED, READY, PROGRESS, PLACES = 0, 1, 2, 3
"""Words of a rank's line: calls entered; segments ready and accesses finished since connect; two places, for even and
odd calls."""
BOUND = 32
"""Programs kept with their views, so that a repeated call on the same buffer makes no object."""


class Place(NamedTuple):
    """Where a rank's buffer lies: offset in bytes; `slots` is 0 for the whole buffer, else the number of staging slots
    there."""

    offset: int
    slots: int


class MappedEngine:
    """One call at a time over the memories of all ranks."""

    def __init__(self, transport: Mapped) -> None:
        self._transport = transport
        self._region = transport.register(CACHE_LINE)  # its memory is free again with the last array in it
        self._lines = [self._line(transport.remote(self._region, peer).local) for peer in range(transport.world_size)]
        self._own = self._lines[transport.rank]
        self._calls = 0
        self._ready = [0] * transport.world_size
        self._finished = [0] * transport.world_size
        self._staging = np.empty(0, np.uint8)
        self._bound: OrderedDict[tuple[Any, ...], tuple[Plan, list[tuple[Any, ...]]]] = OrderedDict()

    def run(
        self, algorithm: str, operation: Operation, work: Array, reduction: ReduceOperation, root: int
    ) -> Iterator[Handle]:
        """Yields what it waits for; what was yielded must be done before the next is asked for."""
        transport = self._transport
        offset = transport.locate(work)
        plan = compile_plan(
            algorithm, operation, transport.world_size, work.size, work.itemsize, root, transport.rank, offset is None
        )
        for nbytes in _sent(algorithm, operation, transport.world_size, work.size, root, transport.rank):
            transport.traffic.count(nbytes * work.itemsize)
        self._enter(plan, work, offset)
        for peer in plan.touched:
            if self._lines[peer][ENTERED] < self._calls:
                yield Reach(transport, self._lines[peer], peer, ENTERED, self._calls)
        for waits, function, arguments, word in self._program(plan, work, reduction):
            for wait in waits:
                reach = self._missing(wait)
                if reach is not None:
                    yield reach
            function(*arguments)
            if word:
                self._own[word] += 1
        for wait in plan.last:
            reach = self._missing(wait)
            if reach is not None:
                yield reach
        for peer, total in enumerate(plan.totals):
            self._finished[peer] += total
            self._ready[peer] += plan.segments

    def _enter(self, plan: Plan, work: Array, offset: int | None) -> None:
        slots = 0
        if offset is None:
            slots = plan.slots
            offset = self._stage(slots * plan.shape.size(0) * work.itemsize)
        self._calls += 1
        cell = PLACES + self._calls % 2 * 2
        self._own[cell], self._own[cell + 1] = offset, slots
        if not slots:
            self._own[READY] += plan.segments
        self._own[ENTERED] = self._calls

    def _stage(self, nbytes: int) -> int:
        if self._staging.nbytes < nbytes:
            self._staging = self._transport.allocate(nbytes)
        offset = self._transport.locate(self._staging)
        assert offset is not None
        return offset

    def _missing(self, wait: Wait) -> Reach | None:
        peer, ready, number = wait
        word = READY if ready else PROGRESS
        target = number + (self._ready if ready else self._finished)[peer]
        return (
            Reach(self._transport, self._lines[peer], peer, word, target) if self._lines[peer][word] < target else None
        )

    def _program(self, plan: Plan, work: Array, reduction: ReduceOperation) -> list[tuple[Any, ...]]:
        """The plan's steps with their views; kept for buffers in the shared memory, which are the same ones in every
        training step."""
        rank = self._transport.rank
        places = {peer: self._place(peer) for peer in (*plan.touched, rank)}
        key = (id(plan), work.dtype, reduction, tuple(places.items()))
        if key in self._bound:
            self._bound.move_to_end(key)
            return self._bound[key][1]
        binder = _Binder(self._transport, plan, places, work, UFUNCS[reduction])
        # A buffer that is not staged is ready as soon as its rank has entered the call.
        direct = {peer for peer, place in places.items() if not place.slots}
        program = [
            (tuple(wait for wait in step.waits if not (wait.ready and wait.peer in direct)), *binder.bind(step))
            for step in plan.steps
        ]
        if not places[rank].slots:
            self._bound[key] = plan, program
            if len(self._bound) > BOUND:
                self._bound.popitem(last=False)
        return program

    def _place(self, peer: int) -> Place:
        cell = PLACES + self._calls % 2 * 2
        return Place(self._lines[peer][cell], self._lines[peer][cell + 1])

    @staticmethod
    def _line(local: Array | None) -> memoryview:
        assert local is not None
        # Items of 8 bytes are loaded and stored by one instruction each.
        return local.data.cast("Q")


class _Binder:
    """Finds the views on which a step works."""

    def __init__(self, transport: Mapped, plan: Plan, places: dict[int, Place], work: Array, ufunc: np.ufunc) -> None:
        self._rank, self._shape, self._places, self._work, self._ufunc = transport.rank, plan.shape, places, work, ufunc
        self._memory = {peer: transport.memory(peer) for peer in places}

    def bind(self, step: Step) -> tuple[Callable[..., Any], tuple[Array, ...], int]:
        """Function, arguments, and the word that the rank advances afterwards."""
        if step.kind in ("stage_in", "stage_out"):
            staged = self._view(self._rank, step.segment, 0, self._shape.size(step.segment)).reshape(
                self._shape.parts(step.segment), -1
            )
            users = self._users(step.segment)
            return (
                np.copyto,
                (staged, users) if step.kind == "stage_in" else (users, staged),
                READY if step.kind == "stage_in" else 0,
            )
        own = self._view(self._rank, step.segment, step.start, step.stop)
        other = self._view(step.peer, step.segment, step.start, step.stop)
        if step.kind == "reduce":
            return self._ufunc, (own, other, own), PROGRESS
        return np.copyto, (other, own) if step.kind == "push" else (own, other), PROGRESS

    def _users(self, segment: int) -> Array:
        """A segment's slices of the user's buffer, a row per block."""
        shape, start = self._shape, self._shape.place(segment, 0)
        if shape.parts(segment) == 1:
            return self._work[start : start + shape.size(segment)].reshape(1, -1)
        return self._work[: shape.blocks * shape.block].reshape(shape.blocks, shape.block)[
            :, start : start + shape.slice(segment)
        ]

    def _view(self, rank: int, segment: int, start: int, stop: int) -> Array:
        offset, slots = self._places[rank]
        first = segment % slots * self._shape.size(0) + start if slots else self._shape.place(segment, start)
        begin = offset + first * self._work.itemsize
        return self._memory[rank][begin : begin + (stop - start) * self._work.itemsize].view(self._work.dtype)


class Reach:
    """Handle: until a peer's counter reaches a number."""

    def __init__(self, transport: Mapped, line: memoryview, peer: int, word: int, number: int) -> None:
        self._transport, self._line, self._peer, self._word, self._number = transport, line, peer, word, number

    def test(self) -> bool:
        return self._line[self._word] >= self._number

    def wait(self) -> None:
        self._transport.wait_for(self.test, self._peer)


@lru_cache(maxsize=256)
def _sent(algorithm: str, operation: Operation, world_size: int, count: int, root: int, rank: int) -> tuple[int, ...]:
    """Elements of every message that a rank sends."""
    found = messages(algorithm, operation, world_size, count, root=root, rank=rank)
    return tuple(message.stop - message.start for message in found if message.source == rank)
