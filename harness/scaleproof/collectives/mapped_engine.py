"""Executes a collective directly on the ranks' buffers if peers can access them: without messages, and without copies
besides those of the schedule. A buffer outside of the shared memory is accessed where it is if it is large and the
kernel copies between ranks; otherwise it passes through staging slots."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from scaleproof.collectives.mapped_plan import Plan, Step, Wait, compile_plan
from scaleproof.collectives.message_schedule import messages
from scaleproof.core.transport_errors import TransportError
from scaleproof.spec.case import Operation
from scaleproof.transports._buffers import CACHE_LINE, address_of, bytes_at
from scaleproof.transports.contract import UFUNCS, Array, Handle, Mapped, ReduceOperation, Reducing

ENTERED, READY, PROGRESS, LOCATIONS = 0, 1, 2, 3
"""Indices of words in a rank's cache line: calls entered; segments ready and accesses finished since connect; then two
buffer locations, for even and odd calls."""
KEPT_PROGRAMS = 32
"""Number of cached programs with their views, so that a repeated call on the same buffer creates no objects."""
PRIVATE = 1 << 63
"""Set in the second word of the location of a buffer in private memory, whose other bits are its bytes; the first word
is its address."""


class BufferLocation(NamedTuple):
    """Location of a rank's buffer: offset in bytes; `slots`: 0 for the whole buffer, otherwise the number of staging
    slots at the offset; `private_nbytes`: bytes of a buffer in the rank's private memory, at the address `offset`; 0
    for one in its shared memory."""

    offset: int
    slots: int
    private_nbytes: int


def in_place(transport: Mapped, buffer: Array, offset: int | None) -> bool:
    """Whether peers access a buffer where it is; `offset`: of the buffer in the shared memory."""
    private = transport.private_memory
    return offset is not None or (private is not None and private.suits(buffer.nbytes, "collective"))


class MappedEngine:
    """Runs one call at a time over the memory of all ranks."""

    def __init__(self, transport: Mapped) -> None:
        self._transport = transport
        self._region = transport.register(CACHE_LINE)  # its memory is free again with the last array in it
        self._lines = [self._line(transport.remote(self._region, peer).local) for peer in range(transport.world_size)]
        self._own = self._lines[transport.rank]
        self._calls = 0
        self._ready = [0] * transport.world_size
        self._finished = [0] * transport.world_size
        self._staging = np.empty(0, np.uint8)
        self._fetched = np.empty(0, np.uint8)
        self._programs: OrderedDict[tuple[Any, ...], tuple[Plan, list[tuple[Any, ...]]]] = OrderedDict()

    def run(
        self, algorithm: str, operation: Operation, work: Array, reduction: ReduceOperation, root: int
    ) -> Iterator[Handle]:
        """Yields the handles to wait for; a handle must be done before the next one is requested."""
        transport = self._transport
        offset = transport.locate(work)
        staged = not in_place(transport, work, offset)
        plan = compile_plan(
            algorithm, operation, transport.world_size, work.size, work.itemsize, root, transport.rank, staged
        )
        for nbytes in _sent(algorithm, operation, transport.world_size, work.size, root, transport.rank):
            transport.traffic.count(nbytes * work.itemsize)
        self._enter(plan, work, offset, staged)
        for peer in plan.touched:
            if self._lines[peer][ENTERED] < self._calls:
                yield CounterReached(transport, self._lines[peer], peer, ENTERED, self._calls)
        for waits, function, arguments, word in self._program(plan, work, reduction):
            for wait in waits:
                handle = self._missing(wait)
                if handle is not None:
                    yield handle
            function(*arguments)
            if word:
                self._own[word] += 1
        for wait in plan.last:
            handle = self._missing(wait)
            if handle is not None:
                yield handle
        for peer, total in enumerate(plan.totals):
            self._finished[peer] += total
            self._ready[peer] += plan.segments

    def _enter(self, plan: Plan, work: Array, offset: int | None, staged: bool) -> None:
        detail = 0
        if staged:
            offset, detail = self._stage(plan.slots * plan.shape.size(0) * work.itemsize), plan.slots
        elif offset is None:
            offset, detail = address_of(work), PRIVATE | work.nbytes
        self._calls += 1
        cell = LOCATIONS + self._calls % 2 * 2
        self._own[cell], self._own[cell + 1] = offset, detail
        if not staged:
            self._own[READY] += plan.segments
        self._own[ENTERED] = self._calls

    def _stage(self, nbytes: int) -> int:
        if self._staging.nbytes < nbytes:
            self._staging = self._transport.allocate(nbytes)
        offset = self._transport.locate(self._staging)
        assert offset is not None
        return offset

    def _scratch(self, nbytes: int) -> Array:
        """Where bytes of a peer wait to be reduced; one place for all calls, so that it stays in the cache."""
        if self._fetched.nbytes < nbytes:
            self._fetched = np.empty(nbytes, np.uint8)
        return self._fetched[:nbytes]

    def _missing(self, wait: Wait) -> CounterReached | None:
        peer, ready, number = wait
        word = READY if ready else PROGRESS
        target = number + (self._ready if ready else self._finished)[peer]
        if self._lines[peer][word] >= target:
            return None
        return CounterReached(self._transport, self._lines[peer], peer, word, target)

    def _program(self, plan: Plan, work: Array, reduction: ReduceOperation) -> list[tuple[Any, ...]]:
        """The plan's steps with their views; cached for buffers in shared memory, which every training step uses
        again."""
        rank = self._transport.rank
        locations = {peer: self._location(peer, work.nbytes) for peer in (*plan.touched, rank)}
        key = (id(plan), work.dtype, reduction, tuple(locations.items()))
        if key in self._programs:
            self._programs.move_to_end(key)
            return self._programs[key][1]
        binder = _Binder(self._transport, plan, locations, work, UFUNCS[reduction], self._scratch)
        # A buffer that is not staged is ready as soon as its rank has entered the call.
        direct = {peer for peer, location in locations.items() if not location.slots}
        program = [
            (tuple(wait for wait in step.waits if not (wait.ready and wait.peer in direct)), *binder.bind(step))
            for step in plan.steps
        ]
        if not locations[rank].slots:
            self._programs[key] = plan, program
            if len(self._programs) > KEPT_PROGRAMS:
                self._programs.popitem(last=False)
        return program

    def _location(self, peer: int, nbytes: int) -> BufferLocation:
        cell = LOCATIONS + self._calls % 2 * 2
        offset, detail = self._lines[peer][cell], self._lines[peer][cell + 1]
        if not detail & PRIVATE:
            return BufferLocation(offset, detail, 0)
        if detail ^ PRIVATE != nbytes:
            raise TransportError(f"rank {peer} calls with {detail ^ PRIVATE} bytes, this rank with {nbytes}")
        return BufferLocation(offset, 0, nbytes)

    @staticmethod
    def _line(local: Array | None) -> memoryview:
        assert local is not None
        # 8-byte items are loaded and stored by a single instruction, so a peer never sees half a word.
        return local.data.cast("Q")


class _Binder:
    """Makes the views that a step works on."""

    def __init__(
        self,
        transport: Mapped,
        plan: Plan,
        locations: dict[int, BufferLocation],
        work: Array,
        ufunc: Reducing,
        scratch: Callable[[int], Array],
    ) -> None:
        self._rank, self._shape, self._staged = transport.rank, plan.shape, plan.staged
        self._locations, self._work, self._ufunc = locations, work, ufunc
        self._memory = {peer: transport.memory(peer) for peer in locations}
        self._private = transport.private_memory
        self._scratch = scratch

    def bind(self, step: Step) -> tuple[Callable[..., Any], tuple[Array, ...], int]:
        """Function, arguments, and the word of this rank's line to increment afterwards (0: none)."""
        if step.kind in ("stage_in", "stage_out"):
            staged = self._view(self._rank, step.segment, 0, self._shape.size(step.segment))
            staged = staged.reshape(self._shape.parts(step.segment), -1)[step.start : step.stop]
            users = self._users(step.segment)[step.start : step.stop]
            if step.kind == "stage_in":
                return np.copyto, (staged, users), READY
            return np.copyto, (users, staged), 0
        own = self._own(step)
        if self._locations[step.peer].private_nbytes:
            return self._kernel_copy(step, own), (own,), PROGRESS
        other = self._view(step.peer, step.segment, step.start, step.stop)
        if step.kind == "reduce":
            return self._ufunc, (own, other, own), PROGRESS
        return np.copyto, (other, own) if step.kind == "push" else (own, other), PROGRESS

    def _users(self, segment: int) -> Array:
        """A segment's slices of the user's buffer, a row per block."""
        shape, start = self._shape, self._shape.position(segment, 0)
        if shape.parts(segment) == 1:
            return self._work[start : start + shape.size(segment)].reshape(1, -1)
        return self._work[: shape.blocks * shape.block].reshape(shape.blocks, shape.block)[
            :, start : start + shape.slice(segment)
        ]

    def _own(self, step: Step) -> Array:
        """This rank's side of an access: in a staging slot only if peers access that block too."""
        if self._staged and step.start // self._shape.slice(step.segment) not in self._staged[step.segment]:
            start = self._shape.position(step.segment, step.start)
            return self._work[start : start + step.stop - step.start]
        return self._view(self._rank, step.segment, step.start, step.stop)

    def _kernel_copy(self, step: Step, own: Array) -> Callable[..., Any]:
        assert self._private is not None
        address = self._begin(step.peer, step.segment, step.start)
        if step.kind == "push":
            return self._private.writer(step.peer, address, own)
        if step.kind == "pull":
            return self._private.reader(step.peer, address, own)
        fetched = self._scratch(own.nbytes).view(own.dtype)
        return _FetchAndReduce(self._private.reader(step.peer, address, fetched), self._ufunc, fetched)

    def _view(self, rank: int, segment: int, start: int, stop: int) -> Array:
        begin, nbytes = self._begin(rank, segment, start), (stop - start) * self._work.itemsize
        private = self._locations[rank].private_nbytes
        # A view that owns nothing: kept programs must not keep the caller's buffer alive.
        return (bytes_at(begin, nbytes) if private else self._memory[rank][begin : begin + nbytes]).view(
            self._work.dtype
        )

    def _begin(self, rank: int, segment: int, start: int) -> int:
        """Where element `start` of a segment begins: an offset, or an address in private memory."""
        offset, slots, _ = self._locations[rank]
        first = segment % slots * self._shape.size(0) + start if slots else self._shape.position(segment, start)
        return offset + first * self._work.itemsize


class _FetchAndReduce:
    """Reduces bytes of a peer that only the kernel can reach; they are still in the cache when they are added."""

    def __init__(self, fetch: Callable[..., None], ufunc: Reducing, fetched: Array) -> None:
        self._fetch, self._ufunc, self._fetched = fetch, ufunc, fetched

    def __call__(self, own: Array) -> None:
        self._fetch()
        self._ufunc(own, self._fetched, own)


class CounterReached:
    """Handle that is done when a peer's counter reaches a number."""

    def __init__(self, transport: Mapped, line: memoryview, peer: int, word: int, number: int) -> None:
        self._transport, self._line, self._peer, self._word, self._number = transport, line, peer, word, number

    def test(self) -> bool:
        return self._line[self._word] >= self._number

    def wait(self) -> None:
        self._transport.wait_for(self.test, self._peer)


@lru_cache(maxsize=256)
def _sent(algorithm: str, operation: Operation, world_size: int, count: int, root: int, rank: int) -> tuple[int, ...]:
    """Elements of every message that a rank sends."""
    schedule = messages(algorithm, operation, world_size, count, root=root, rank=rank)
    return tuple(message.stop - message.start for message in schedule if message.source == rank)
