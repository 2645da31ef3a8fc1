"""Collectives over a point-to-point transport: our algorithms over any transport's sends and receives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from scaleproof.collectives.mapped_engine import MappedEngine, in_place
from scaleproof.collectives.message_engine import MessageEngine
from scaleproof.collectives.message_schedule import schedule_of
from scaleproof.collectives.message_trace import Moved, TracedMappedEngine, TracedTransport
from scaleproof.collectives.transport_subset import Subset, subset
from scaleproof.core.transport_errors import TransportError
from scaleproof.spec import registry
from scaleproof.spec.case import Operation
from scaleproof.spec.common_case import NATIVE
from scaleproof.transports._buffers import memory_of
from scaleproof.transports.contract import (
    Array,
    Collectives,
    Done,
    Handle,
    Mapped,
    PointToPoint,
    ReduceOperation,
    Traffic,
)

if TYPE_CHECKING:
    from scaleproof.core.board import Post
    from scaleproof.core.context import RankContext


def open_group(context: RankContext) -> Collectives:
    """Connects the transport of the context's case. If the case names one of our algorithms, it runs over the
    transport's sends and receives, on as many channels as the case's strategy has."""
    name = context.case.transport
    if name is None:
        raise TransportError("this case has no transport")
    if context.case.collective == NATIVE:
        return cast(Collectives, registry.load("transport", name).connect(context))
    further = [context.of_channel(number) for number in range(1, context.case.value("strategy.channels", 1))]
    group = _open_lifted(context, name)
    try:
        for channel in further:
            group.channels.append(_open_lifted(channel, name))
    except BaseException:
        group.close()
        raise
    if further:
        context.facts["channels"] = [channel.facts for channel in further]
    return group


def _open_lifted(context: RankContext, name: str) -> Group:
    transport = registry.load("transport", name).connect(context)
    schedule = schedule_of(context.case.collective, context.case.nodes)
    trace = context.trace if context.case.tracing == "full" else None
    return Group(transport, schedule, context.post, trace, memory_of(context.case.buffers, transport))


def channels_of(group: Collectives) -> Sequence[Collectives]:
    """Groups of the same ranks whose calls may be made at the same time, each by one thread; the first is `group`."""
    return group.channels if isinstance(group, Group) else (group,)


class Group:
    """Collectives over all ranks of a point-to-point transport. Calls run in the order in which they were made,
    progressed by `wait` and `test`."""

    def __init__(
        self,
        transport: PointToPoint,
        algorithm: str,
        post: Post | None = None,
        trace: list[Moved] | None = None,
        memory: Callable[[int], Array] | None = None,
    ) -> None:
        plugin = registry.get("collective", algorithm.partition("/")[0])
        self._trace = trace
        # The messages of a part are traced by the whole transport.
        if trace is not None and not isinstance(cast(object, transport), Subset):
            transport = cast(PointToPoint, TracedTransport(transport, trace))
        self.transport = transport
        self._memory = memory or transport.allocate
        self.algorithm = algorithm
        self.rank, self.world_size = transport.rank, transport.world_size
        self.capabilities = transport.capabilities
        self.channels: list[Group] = [self]
        """This group, and others of the same ranks with connections of their own, which close with it."""
        self._dtypes = frozenset(np.dtype(name) for name in transport.capabilities.dtypes)
        self._mapped = transport if isinstance(transport, Mapped) else None
        self._engine: MessageEngine | MappedEngine
        if self._mapped is None or plugin.exchanges:
            self._engine = MessageEngine(transport, post)
        else:
            self._engine = MappedEngine(self._mapped) if trace is None else TracedMappedEngine(self._mapped, trace)
        self._scratch = np.empty(0, np.uint8)
        self._post = post
        self._calls: deque[_Call] = deque()

    @property
    def traffic(self) -> Traffic:
        """Of all channels."""
        if len(self.channels) == 1:
            return self.transport.traffic
        parts = [channel.transport.traffic for channel in self.channels]
        return Traffic(sum(part.nbytes for part in parts), sum(part.messages for part in parts))

    def part(self, members: Sequence[int]) -> Group:
        """Collectives over some ranks only, with separate traffic counts. All ranks call it at the same time, each for
        its own part. Calls of the group and of its parts run in the order in which they were made, because messages do
        not identify their group."""
        algorithm = self.algorithm.partition("/")[0]  # without the number of nodes
        group = Group(subset(self.transport, members), algorithm, self._post, self._trace, self._memory)
        group._calls = self._calls
        return group

    def allocate(self, nbytes: int) -> Array:
        """Memory for the caller's buffers: that of Transport.allocate, unless the case says otherwise."""
        return self._memory(nbytes)

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """See Collectives.all_reduce."""
        return self._start("all_reduce", buffer, operation)

    def reduce_scatter(self, source: Array, target: Array) -> Handle:
        """See Collectives.reduce_scatter."""
        self._require(
            source.size == target.size * self.world_size and source.dtype == target.dtype,
            "source must hold world_size times the target's elements",
        )
        self._require_dtype(source)
        return self._submit("reduce_scatter", self._reduce_scatter(source, target))

    def all_gather(self, source: Array, target: Array) -> Handle:
        """See Collectives.all_gather."""
        self._require(
            target.size == source.size * self.world_size and source.dtype == target.dtype,
            "target must hold world_size times the source's elements",
        )
        self._require_dtype(source)
        return self._submit("all_gather", self._all_gather(source, target))

    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """See Collectives.broadcast."""
        return self._start("broadcast", buffer, "sum", root)

    def barrier(self) -> None:
        """See Transport.barrier; pending calls are finished first."""
        if self._calls:
            self._calls[-1].wait()
        if self._post:
            self._post.begin_call("barrier")
        self.transport.barrier()
        if self._post:
            self._post.end_call()

    def close(self) -> None:
        """See Transport.close."""
        for channel in reversed(self.channels):
            channel.transport.close()

    def _start(self, name: Operation, buffer: Array, reduction: ReduceOperation, root: int = 0) -> Handle:
        self._require(buffer.ndim == 1 and buffer.flags.c_contiguous, "a buffer must be flat and C-contiguous")
        self._require_dtype(buffer)
        return self._submit(name, self._run(name, buffer, reduction, root))

    def _run(self, name: Operation, work: Array, reduction: ReduceOperation = "sum", root: int = 0) -> Iterator[Handle]:
        if self.world_size == 1 or work.size == 0:
            return iter(())
        return self._engine.run(self.algorithm, name, work, reduction, root)

    def _reduce_scatter(self, source: Array, target: Array) -> Iterator[Handle]:
        work = self._work(source)
        np.copyto(work, source)
        yield from self._run("reduce_scatter", work)
        np.copyto(target, self._block(work))

    def _all_gather(self, source: Array, target: Array) -> Iterator[Handle]:
        reachable = self._mapped is None or in_place(self._mapped, target, self._mapped.locate(target))
        work = target if reachable else self._work(target)
        np.copyto(self._block(work), source)
        yield from self._run("all_gather", work)
        if not reachable:
            np.copyto(target, work)

    def _block(self, work: Array) -> Array:
        size = work.size // self.world_size
        return work[self.rank * size : (self.rank + 1) * size]

    def _work(self, like: Array) -> Array:
        """A scratch buffer with the size and type of `like`; only one call runs at a time."""
        if self._scratch.nbytes < like.nbytes:
            self._scratch = self.transport.allocate(like.nbytes)
        return self._scratch[: like.nbytes].view(like.dtype)

    def _submit(self, name: Operation, steps: Iterator[Handle]) -> Handle:
        if self._post:
            self._post.begin_call(name)
        call = _Call(self._calls, steps, self._post)
        self._calls.append(call)
        call.test()
        return call

    def _require_dtype(self, buffer: Array) -> None:
        if buffer.dtype not in self._dtypes:
            valid = ", ".join(sorted(self.capabilities.dtypes))
            raise TransportError(f"{self.capabilities.library} does not take {buffer.dtype.name}; it takes {valid}")

    def _require(self, holds: bool, message: str) -> None:
        if not holds:
            raise TransportError(message)


class _Call:
    """Handle of one collective. It runs the handles of its steps one after the other, after all earlier calls. When a
    call fails, all later calls fail with the same error."""

    def __init__(self, queue: deque[_Call], steps: Iterator[Handle], post: Post | None) -> None:
        self._queue = queue
        self._post = post
        self._steps = steps
        self._step: Handle = Done()
        self._failed: TransportError | None = None
        self._done = False

    def test(self) -> bool:
        while not self._done and self._queue[0].advance():
            pass
        return self._done

    def wait(self) -> None:
        while not self._done:
            first = self._queue[0]
            if not first.advance():
                first.block()

    def block(self) -> None:
        """Wait for the current step."""
        self._step.wait()

    def advance(self) -> bool:
        """Make progress without blocking; True when the call is done and has left the queue."""
        if self._failed is not None:
            raise self._failed
        try:
            while self._step.test():
                next_step = next(self._steps, None)
                if next_step is None:
                    self._done = True
                    self._queue.popleft()
                    if self._post:
                        self._post.end_call()
                    return True
                self._step = next_step
        except TransportError as error:
            # A generator that raised is exhausted, which must not look like success.
            self._failed = error
            raise
        return False
