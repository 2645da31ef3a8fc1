"""Lifts a point-to-point transport to collectives: our algorithms over anybody's sends and receives."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from scaleproof.collectives.mapped_engine import MappedEngine
from scaleproof.collectives.message_engine import MessageEngine
from scaleproof.collectives.message_schedule import schedule_of
from scaleproof.collectives.message_trace import Moved, TracedMappedEngine, TracedTransport
from scaleproof.collectives.transport_subset import Subset, subset
from scaleproof.core.transport_errors import TransportError
from scaleproof.spec import registry
from scaleproof.spec.case import NATIVE, Operation
from scaleproof.transports.contract import Array, Collectives, Done, Handle, Mapped, PointToPoint, ReduceOperation

if TYPE_CHECKING:
    from scaleproof.core.board import Post
    from scaleproof.core.context import RankContext


def open_group(context: RankContext) -> Collectives:
    """Connects the transport of the context's case; the case's algorithm, where it names one, runs over its sends and
    receives."""
    name = context.case.transport
    if name is None:
        raise TransportError("this case has no transport")
    transport = registry.load("transport", name).connect(context)
    if context.case.collective != NATIVE:
        schedule = schedule_of(context.case.collective, context.case.nodes)
        return Group(transport, schedule, context.post, context.trace if context.case.tracing == "full" else None)
    return cast(Collectives, transport)


class Group:
    """Collectives over all ranks of a point-to-point transport. Calls run in the order in which they were made,
    progressed by `wait` and `test`."""

    def __init__(
        self, transport: PointToPoint, algorithm: str, post: Post | None = None, trace: list[Moved] | None = None
    ) -> None:
        registry.entry("collective", algorithm.partition("/")[0])
        self._trace = trace
        if trace is not None and not isinstance(
            cast(object, transport), Subset
        ):  # a part's messages are those of the whole, which traces them
            transport = cast(PointToPoint, TracedTransport(transport, trace))
        self.transport = transport
        self.algorithm = algorithm
        self.rank, self.world_size = transport.rank, transport.world_size
        self.traffic, self.capabilities = transport.traffic, transport.capabilities
        self._dtypes = frozenset(np.dtype(name) for name in transport.capabilities.dtypes)
        self._mapped = transport if isinstance(transport, Mapped) else None
        self._engine: MessageEngine | MappedEngine
        if self._mapped is None:
            self._engine = MessageEngine(transport, post)
        else:
            self._engine = MappedEngine(self._mapped) if trace is None else TracedMappedEngine(self._mapped, trace)
        self._scratch = np.empty(0, np.uint8)
        self._post = post
        self._calls: deque[_Call] = deque()

    def part(self, members: Sequence[int]) -> Group:
        """Collectives over some ranks only, which count what they send by themselves too. All ranks call it at the same
        time, each for the part that it is in. Calls of the whole and of its parts run in the one order in which they
        were made: messages between two ranks bear no mark of their group."""
        found = Group(
            subset(self.transport, members), self.algorithm.partition("/")[0], self._post, self._trace
        )  # a part knows no nodes
        found._calls = self._calls
        return found

    def allocate(self, nbytes: int) -> Array:
        """See Transport.allocate."""
        return self.transport.allocate(nbytes)

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """See Collectives.all_reduce."""
        return self._start("all_reduce", buffer, operation)

    def reduce_scatter(self, source: Array, target: Array) -> Handle:
        """See Collectives.reduce_scatter."""
        self._expect(
            source.size == target.size * self.world_size and source.dtype == target.dtype,
            "source must hold world_size times the target's elements",
        )
        self._expect_type(source)
        return self._submit("reduce_scatter", self._reduce_scatter(source, target))

    def all_gather(self, source: Array, target: Array) -> Handle:
        """See Collectives.all_gather."""
        self._expect(
            target.size == source.size * self.world_size and source.dtype == target.dtype,
            "target must hold world_size times the source's elements",
        )
        self._expect_type(source)
        return self._submit("all_gather", self._all_gather(source, target))

    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """See Collectives.broadcast."""
        return self._start("broadcast", buffer, "sum", root)

    def barrier(self) -> None:
        """See Transport.barrier; calls under way are finished first."""
        if self._calls:
            self._calls[-1].wait()
        if self._post:
            self._post.entered("barrier")
        self.transport.barrier()
        if self._post:
            self._post.left()

    def close(self) -> None:
        """See Transport.close."""
        self.transport.close()

    def _start(self, name: Operation, buffer: Array, reduction: ReduceOperation, root: int = 0) -> Handle:
        self._expect(buffer.ndim == 1 and buffer.flags.c_contiguous, "a buffer must be flat and C-contiguous")
        self._expect_type(buffer)
        return self._submit(name, self._run(name, buffer, reduction, root))

    def _run(self, name: Operation, work: Array, reduction: ReduceOperation = "sum", root: int = 0) -> Iterator[Handle]:
        return (
            iter(())
            if self.world_size == 1 or work.size == 0
            else self._engine.run(self.algorithm, name, work, reduction, root)
        )

    def _reduce_scatter(self, source: Array, target: Array) -> Iterator[Handle]:
        work = self._work(source)
        np.copyto(work, source)
        yield from self._run("reduce_scatter", work)
        np.copyto(target, self._block(work))

    def _all_gather(self, source: Array, target: Array) -> Iterator[Handle]:
        reachable = self._mapped is None or self._mapped.locate(target) is not None
        work = target if reachable else self._work(target)
        np.copyto(self._block(work), source)
        yield from self._run("all_gather", work)
        if not reachable:
            np.copyto(target, work)

    def _block(self, work: Array) -> Array:
        size = work.size // self.world_size
        return work[self.rank * size : (self.rank + 1) * size]

    def _work(self, like: Array) -> Array:
        """A scratch for the call that runs: only one does."""
        if self._scratch.nbytes < like.nbytes:
            self._scratch = self.allocate(like.nbytes)
        return self._scratch[: like.nbytes].view(like.dtype)

    def _submit(self, name: Operation, steps: Iterator[Handle]) -> Handle:
        if self._post:
            self._post.entered(name)
        call = _Call(self._calls, steps, self._post)
        self._calls.append(call)
        call.test()
        return call

    def _expect_type(self, buffer: Array) -> None:
        if buffer.dtype not in self._dtypes:
            known = ", ".join(sorted(self.capabilities.dtypes))
            raise TransportError(f"{self.capabilities.library} does not take {buffer.dtype.name}; it takes {known}")

    def _expect(self, fits: bool, message: str) -> None:
        if not fits:
            raise TransportError(message)


class _Call:
    """Handle of one collective: the handles of its steps, one after the other, after all earlier calls. A failed call
    fails all later ones alike."""

    def __init__(self, queue: deque[_Call], steps: Iterator[Handle], post: Post | None) -> None:
        self._queue = queue
        self._post = post
        self._steps = steps
        self._waiting: Handle = Done()
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
        """Wait for the step that this call stands at."""
        self._waiting.wait()

    def advance(self) -> bool:
        """Go as far as possible without blocking; True when the call is done, and then it leaves the queue."""
        if self._failed is not None:
            raise self._failed
        try:
            while self._waiting.test():
                following = next(self._steps, None)
                if following is None:
                    self._done = True
                    self._queue.popleft()
                    if self._post:
                        self._post.left()
                    return True
                self._waiting = following
        except TransportError as error:
            # A generator that raised is at its end, which must not pass for success.
            self._failed = error
            raise
        return False
