"""Base of the mechanisms over a one-sided transport: one registered region per rank, operations that advance step by
step, releases."""

from __future__ import annotations

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar, cast

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.remote._region_plan import WORD, Plan, check_shape, require_static, rounded
from scaleproof.remote.tensor_channel import Arrival, Edge, EdgeCounts, Mechanism, TransferCounts
from scaleproof.transports.contract import Array, Handle, OneSided, Region, Transport

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

Steps = Iterator[None]
"""The work of one rank for one tensor; yields whenever it has to wait."""
JOIN_S = 120.0
"""How long ranks wait for each other when they open a channel."""
_CHANNEL_NUMBERS = itertools.count()
M = TypeVar("M", bound="MovingTensor")


class MovingTensor:
    """A transfer in progress: a handle for its sender, an arrival for its receiver. After an error every further call
    raises it again."""

    steps: Steps

    def __init__(self, channel: OneSidedChannel, peer: int) -> None:
        self._channel, self._peer = channel, peer
        self.done = False
        self._failed: TransportError | None = None

    def step(self) -> bool:
        """Make progress as far as possible; True at the end."""
        if self.done:
            return True
        if self._failed is not None:
            raise self._failed
        try:
            next(self.steps)
        except StopIteration:
            self.done = True
        except TransportError as error:
            self._failed = error
            raise
        return self.done

    def test(self) -> bool:
        if not self.done:
            self._channel.advance()
        return self.done or self.step()

    def _finish(self) -> None:
        if not self.test():
            self._channel.transport.wait_for(self.test, self._peer)


class SendHandle(MovingTensor):
    """Handle of a tensor that is being sent."""

    def wait(self) -> None:
        self._finish()


class ReceiveHandle(MovingTensor):
    """Arrival of a tensor that is being received."""

    array: Array

    def wait(self) -> Array:
        self._finish()
        return self.array


@dataclass(slots=True)
class EdgeEnd:
    """One rank's end of an edge. Offsets are relative to regions."""

    edge: Edge
    dtype: np.dtype
    cost: TransferCounts
    peer: int
    remote: Region
    """The peer's region."""
    freed: int
    """Offset of the word in which the receiver reports how many tensors it has freed: in the own region for a sender,
    in the sender's region for a receiver."""
    number: int = 0
    """Tensors sent or received so far, including the one under way."""
    released: int = 0
    last: MovingTensor | None = None


class OneSidedChannel(ABC):
    """See remote/tensor_channel.py's TensorChannel. A mechanism defines the layout of regions (`reserve`), and the work
    of the sender and of the receiver for one tensor."""

    mechanism: Mechanism
    static_only = False
    """Whether the mechanism places tensors in advance, so that every shape must be fixed."""
    receiver_acts = False
    """Whether a receive needs progress while the rank waits for something else."""

    @classmethod
    def connect(cls, transport: Transport, edges: tuple[Edge, ...], context: RankContext) -> Self:
        """See open_channel; also raises NotStatic."""
        if cls.static_only:
            require_static(edges, cls.mechanism)
        return cls(_require_one_sided(transport, cls.mechanism), edges, context)

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        self.transport, self.edges, self.rank = transport, edges, transport.rank
        self.counts = EdgeCounts()
        if len(set(edges)) != len(edges):
            raise TransportError("two edges have the same name, source and destination")
        self.plan = Plan(transport.world_size)
        self.reserve_all(self.plan)
        self.region = transport.register(self.plan.nbytes)
        assert self.region.local is not None
        self.memory = self.region.local
        mine = hashlib.sha256(repr(edges).encode()).hexdigest()
        everyone = context.rendezvous.exchange(
            f"channel-{next(_CHANNEL_NUMBERS)}", self.rank, transport.world_size, mine, JOIN_S
        )
        if len(set(everyone)) > 1:
            raise TransportError(f"ranks opened a channel with different edges: {everyone}")
        self.out = {edge: self._end(edge, edge.destination) for edge in edges if edge.source == self.rank}
        self.into = {edge: self._end(edge, edge.source) for edge in edges if edge.destination == self.rank}
        self._active: list[MovingTensor] = []

    def reserve_all(self, plan: Plan) -> None:
        """Reserve the space of all edges."""
        for edge in self.edges:
            plan.reserve(edge.source, ("freed", edge), WORD)
            self.reserve(plan, edge)

    @abstractmethod
    def reserve(self, plan: Plan, edge: Edge) -> None:
        """Reserve the space of an edge in the regions of its two ends."""

    @abstractmethod
    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See TensorChannel."""

    @abstractmethod
    def incoming(self, edge: Edge) -> Array:
        """See TensorChannel."""

    @abstractmethod
    def move_out(self, end: EdgeEnd, array: Array) -> Steps:
        """The sender's steps for tensor number `end.number`."""

    @abstractmethod
    def move_in(self, end: EdgeEnd, handle: ReceiveHandle) -> Steps:
        """The receiver's steps for tensor number `end.number`; at the end `handle.array` is set."""

    def on_release(self, end: EdgeEnd) -> None:
        """Called at a release: report to the sender how many tensors are freed."""
        self.report_freed(end)

    def send(self, edge: Edge, array: Array) -> Handle:
        """See TensorChannel."""
        end = self.out.get(edge)
        if end is None:
            raise self._no_end(edge)
        if array.shape != edge.shape or array.dtype != end.dtype:
            check_shape(edge, array.shape, array.dtype)
        if end.last is not None and not end.last.test():
            raise TransportError(f"the last tensor of edge {edge.name!r} is still being sent")
        end.number += 1
        end.cost.tensors += 1
        end.cost.nbytes += array.nbytes
        end.last = sending = SendHandle(self, end.peer)
        return self._start(sending, self.move_out(end, array), True)

    def recv(self, edge: Edge) -> Arrival:
        """See TensorChannel."""
        end = self.into.get(edge)
        if end is None:
            raise self._no_end(edge)
        if end.released < end.number:
            raise TransportError(f"edge {edge.name!r} still holds the previous tensor; release it first")
        end.number += 1
        handle = ReceiveHandle(self, end.peer)
        return self._start(handle, self.move_in(end, handle), self.receiver_acts)

    def release(self, edge: Edge) -> None:
        """See TensorChannel."""
        end = self.into.get(edge)
        if end is None:
            raise self._no_end(edge)
        if end.released == end.number:
            raise TransportError(f"edge {edge.name!r} holds no tensor to release")
        end.released += 1
        self.on_release(end)

    def advance(self) -> None:
        """See TensorChannel."""
        if self._active:
            self._active = [moving for moving in self._active if not moving.step()]

    def settle(self) -> None:
        """See TensorChannel."""
        for moving in self._active:
            if isinstance(moving, SendHandle):
                moving.wait()

    def close(self) -> None:
        """See TensorChannel."""
        self._active, self.out, self.into = [], {}, {}
        self.memory = np.empty(0, np.uint8)
        self.transport.deregister(self.region)

    def copy(self, end: EdgeEnd, source: Array, target: Array) -> None:
        """Copy a payload and count it."""
        np.copyto(target, source)
        end.cost.copies += 1
        end.cost.copied_bytes += source.nbytes

    def write_tensor(self, end: EdgeEnd, source: Array, offset: int, value: int) -> Handle:
        """Write own bytes, with a value behind them, at an offset of the receiver's region."""
        end.cost.messages += 1
        end.cost.writes += 1
        return self.transport.write_flagged(source, end.remote, offset, value)

    def own_bytes(self, offset: int, nbytes: int) -> Array:
        """Bytes of the own region, rounded up to whole words."""
        return self.memory[offset : offset + rounded(nbytes)]

    def freed(self, end: EdgeEnd) -> int:
        """Number of tensors that the receiver has freed, as reported to this sender."""
        return self.transport.poll_word(self.region, end.freed)

    def report_freed(self, end: EdgeEnd) -> None:
        """Report to the sender that all tensors so far are freed."""
        end.cost.releases += 1
        report = self.transport.write_flagged(self.memory[:0], end.remote, end.freed, end.number)
        if not report.test():
            self._start(SendHandle(self, end.peer), until_done(report), True)

    def _start(self, moving: M, steps: Steps, needs_progress: bool) -> M:
        moving.steps = steps
        if not moving.step() and needs_progress:
            self._active.append(moving)
        return moving

    def _end(self, edge: Edge, peer: int) -> EdgeEnd:
        remote = self.transport.remote(self.region, peer)
        return EdgeEnd(
            edge,
            np.dtype(edge.dtype),
            self.counts.of(edge),
            peer,
            remote,
            self.plan.offset(edge.source, ("freed", edge)),
        )

    def _no_end(self, edge: Edge) -> TransportError:
        return TransportError(
            f"rank {self.rank} has no such end of edge {edge.name!r} from {edge.source} to {edge.destination}"
        )


def until_done(handle: Handle) -> Steps:
    """Steps that end when a handle is done."""
    while not handle.test():
        yield


def _require_one_sided(transport: Transport, mechanism: str) -> OneSided:
    """The transport as a one-sided one; raises TransportError when it has no regions."""
    if not transport.capabilities.one_sided:
        raise TransportError(
            f"mechanism {mechanism!r} needs one-sided writes and reads, "
            f"which {transport.capabilities.library} does not have; use 'messages'"
        )
    return cast(OneSided, transport)


def with_flag(nbytes: int) -> int:
    """Bytes of a payload of `nbytes` with its flag."""
    return rounded(nbytes) + WORD
