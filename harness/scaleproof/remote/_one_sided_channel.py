"""What the mechanisms over a one-sided device share: one registered region per rank, operations that advance step by
step, releases."""

from __future__ import annotations

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.remote._region_plan import WORD, Plan, check_shape, rounded
from scaleproof.remote.tensor_channel import Arrival, Edge, EdgeCounts, TransferCounts
from scaleproof.transports.contract import Array, Handle, OneSided, Region, Transport

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

Steps = Iterator[None]
"""The way of one tensor on one rank; yields whenever it cannot go on yet."""
MEET_S = 120.0
_LINKS = itertools.count()
M = TypeVar("M", bound="Moving")


class Moving:
    """A tensor under way: a handle for its sender, an arrival for its receiver. A failure is told to whoever asks
    again."""

    steps: Steps

    def __init__(self, channel: OneSidedChannel, peer: int) -> None:
        self._channel, self._peer = channel, peer
        self.done = False
        self._failed: TransportError | None = None

    def step(self) -> bool:
        """Go as far as possible; True at the end."""
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


class Sending(Moving):
    """Handle of a tensor on its way out."""

    def wait(self) -> None:
        self._finish()


class Receiving(Moving):
    """Arrival of a tensor."""

    array: Array

    def wait(self) -> Array:
        self._finish()
        return self.array


@dataclass(slots=True)
class End:
    """One rank's end of an edge. Offsets are relative to regions."""

    edge: Edge
    dtype: np.dtype
    cost: TransferCounts
    peer: int
    remote: Region
    """The peer's region."""
    freed: int
    """Word in which the receiver tells how many tensors it has freed: in the own region for a sender, in the sender's
    for a receiver."""
    number: int = 0
    """Tensors sent or received so far, the one under way included."""
    released: int = 0
    last: Moving | None = None


class OneSidedChannel(ABC):
    """See remote/tensor_channel.py's TensorChannel. A mechanism says where things lie (`places`), and what the sender and the receiver do
    for one tensor."""

    receiver_acts = False
    """Whether a receive needs to be driven while the rank waits for something else."""

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        self.transport, self.edges, self.rank = transport, edges, transport.rank
        self.counts = EdgeCounts()
        if len(set(edges)) != len(edges):
            raise TransportError("two edges have the same name, source and destination")
        self.plan = Plan(transport.world_size)
        self.lay_out(self.plan)
        self.region = transport.register(self.plan.nbytes)
        assert self.region.local is not None
        self.memory = self.region.local
        mine = hashlib.sha256(repr(edges).encode()).hexdigest()
        everyone = context.rendezvous.exchange(f"link-{next(_LINKS)}", self.rank, transport.world_size, mine, MEET_S)
        if len(set(everyone)) > 1:
            raise TransportError(f"ranks opened a channel with different edges: {everyone}")
        self.out = {edge: self._end(edge, edge.destination) for edge in edges if edge.source == self.rank}
        self.into = {edge: self._end(edge, edge.source) for edge in edges if edge.destination == self.rank}
        self._active: list[Moving] = []

    def lay_out(self, plan: Plan) -> None:
        """Reserve what all edges need."""
        for edge in self.edges:
            plan.put(edge.source, ("freed", edge), WORD)
            self.places(plan, edge)

    @abstractmethod
    def places(self, plan: Plan, edge: Edge) -> None:
        """Reserve what an edge needs in the regions of its two ends."""

    @abstractmethod
    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See TensorChannel."""

    @abstractmethod
    def incoming(self, edge: Edge) -> Array:
        """See TensorChannel."""

    @abstractmethod
    def move_out(self, end: End, array: Array) -> Steps:
        """What the sender does for tensor number `end.number`."""

    @abstractmethod
    def move_in(self, end: End, receiving: Receiving) -> Steps:
        """What the receiver does for tensor number `end.number`; ends with `receiving.array`."""

    def let_go(self, end: End) -> None:
        """What a release does: tell the sender how many tensors are freed."""
        self.tell_free(end)

    def send(self, edge: Edge, array: Array) -> Handle:
        """See TensorChannel."""
        end = self.out.get(edge)
        if end is None:
            raise self._no_end(edge)
        if array.shape != edge.shape or array.dtype != end.dtype:
            check_shape(edge, array.shape, array.dtype)
        if end.last is not None and not end.last.test():
            raise TransportError(f"the last tensor of edge {edge.name!r} is still under way")
        end.number += 1
        end.cost.tensors += 1
        end.cost.nbytes += array.nbytes
        end.last = sending = Sending(self, end.peer)
        return self._start(sending, self.move_out(end, array), True)

    def recv(self, edge: Edge) -> Arrival:
        """See TensorChannel."""
        end = self.into.get(edge)
        if end is None:
            raise self._no_end(edge)
        if end.released < end.number:
            raise TransportError(f"edge {edge.name!r} still holds the tensor before; release it first")
        end.number += 1
        receiving = Receiving(self, end.peer)
        return self._start(receiving, self.move_in(end, receiving), self.receiver_acts)

    def release(self, edge: Edge) -> None:
        """See TensorChannel."""
        end = self.into.get(edge)
        if end is None:
            raise self._no_end(edge)
        if end.released == end.number:
            raise TransportError(f"edge {edge.name!r} holds no tensor to release")
        end.released += 1
        self.let_go(end)

    def advance(self) -> None:
        """See TensorChannel."""
        if self._active:
            self._active = [moving for moving in self._active if not moving.step()]

    def settle(self) -> None:
        """See TensorChannel."""
        for moving in self._active:
            if isinstance(moving, Sending):
                moving.wait()

    def close(self) -> None:
        """See TensorChannel."""
        self._active, self.out, self.into = [], {}, {}
        self.memory = np.empty(0, np.uint8)
        self.transport.deregister(self.region)

    def copy(self, end: End, source: Array, target: Array) -> None:
        """Copy a payload and count it."""
        np.copyto(target, source)
        end.cost.copies += 1
        end.cost.copied_bytes += source.nbytes

    def put(self, end: End, source: Array, place: int, value: int) -> Handle:
        """Write own bytes with a value behind them to a place of the receiver's region."""
        end.cost.messages += 1
        end.cost.writes += 1
        return self.transport.write_flagged(source, end.remote, place, value)

    def own(self, place: int, nbytes: int) -> Array:
        """Bytes of the own region, in whole words."""
        return self.memory[place : place + rounded(nbytes)]

    def freed(self, end: End) -> int:
        """How many tensors the receiver does not need any more, as told to this sender."""
        return self.transport.poll_word(self.region, end.freed)

    def tell_free(self, end: End) -> None:
        """Tell the sender that all tensors so far are not needed any more."""
        end.cost.releases += 1
        telling = self.transport.write_flagged(self.memory[:0], end.remote, end.freed, end.number)
        if not telling.test():
            self._start(Sending(self, end.peer), until(telling), True)

    def _start(self, moving: M, steps: Steps, drive: bool) -> M:
        moving.steps = steps
        if not moving.step() and drive:
            self._active.append(moving)
        return moving

    def _end(self, edge: Edge, peer: int) -> End:
        remote = self.transport.remote(self.region, peer)
        return End(
            edge, np.dtype(edge.dtype), self.counts.of(edge), peer, remote, self.plan.at(edge.source, ("freed", edge))
        )

    def _no_end(self, edge: Edge) -> TransportError:
        return TransportError(
            f"rank {self.rank} has no such end of edge {edge.name!r} from {edge.source} to {edge.destination}"
        )


def until(handle: Handle) -> Steps:
    """Steps that end with a handle."""
    while not handle.test():
        yield


def need_device(transport: Transport, mechanism: str) -> OneSided:
    """The transport as a device; raises TransportError for one that has no regions."""
    if not transport.capabilities.one_sided:
        raise TransportError(
            f"mechanism {mechanism!r} needs one-sided writes and reads, which {transport.capabilities.library} has not; use 'messages'"
        )
    return cast(OneSided, transport)


def flagged(nbytes: int) -> int:
    """Bytes of a payload with its flag."""
    return rounded(nbytes) + WORD
