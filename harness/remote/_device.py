"""What the mechanisms over a one-sided device share: one registered region per rank, operations that advance step by step, releases."""

from __future__ import annotations

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from harness.remote._plan import WORD, Plan, check_shape, rounded
from harness.remote.base import Arrival, Costs, Edge
from harness.transports.base import Array, Handle, OneSided, Transport, TransportError

if TYPE_CHECKING:
    from harness.rank.context import RankContext

Steps = Iterator[None]
"""The way of one tensor on one rank; yields whenever it cannot go on yet."""
MEET_S = 120.0
_LINKS = itertools.count()


class Moving:
    """A tensor under way: a handle for its sender, an arrival for its receiver. A failure is told to whoever asks again."""

    def __init__(self, steps: Steps, link: DeviceLink, peer: int) -> None:
        self._steps = steps
        self._link, self._peer = link, peer
        self.done = False
        self._failed: TransportError | None = None

    def step(self) -> bool:
        """Go as far as possible; True at the end."""
        if self.done:
            return True
        if self._failed is not None:
            raise self._failed
        try:
            next(self._steps)
        except StopIteration:
            self.done = True
        except TransportError as error:
            self._failed = error
            raise
        return self.done

    def test(self) -> bool:
        if not self.done:
            self._link.advance()
        return self.done or self.step()

    def _finish(self) -> None:
        if not self.test():
            self._link.transport.wait_for(self.test, self._peer)


class Sending(Moving):
    """Handle of a tensor on its way out."""

    def wait(self) -> None:
        self._finish()


class Receiving(Moving):
    """Arrival of a tensor."""

    def __init__(self, steps: Steps, link: DeviceLink, peer: int) -> None:
        super().__init__(steps, link, peer)
        self.array = np.empty(0, np.uint8)

    def wait(self) -> Array:
        self._finish()
        return self.array


class DeviceLink(ABC):
    """See remote/base.py's Link. A mechanism says where things lie (`places`), and what the sender and the receiver do for one tensor."""

    receiver_acts = False
    """Whether a receive needs to be driven while the rank waits for something else."""

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        self.transport, self.edges, self.rank = transport, edges, transport.rank
        self.costs = Costs()
        self.number = {edge: number for number, edge in enumerate(edges)}
        if len(self.number) != len(edges):
            raise TransportError("two edges have the same name, source and destination")
        self.plan = Plan(transport.world_size)
        self.lay_out(self.plan)
        self.region = transport.register(self.plan.nbytes)
        assert self.region.local is not None
        self.memory = self.region.local
        self.remote = {peer: transport.remote(self.region, peer) for peer in range(transport.world_size) if peer != self.rank}
        mine = hashlib.sha256(repr(edges).encode()).hexdigest()
        everyone = context.rendezvous.exchange(f"link-{next(_LINKS)}", self.rank, transport.world_size, mine, MEET_S)
        if len(set(everyone)) > 1:
            raise TransportError(f"ranks opened a link with different edges: {everyone}")
        self.sent, self.taken, self._held = (dict.fromkeys(edges, 0) for _ in range(3))
        self._last: dict[Edge, Moving] = {}
        self._active: list[Moving] = []

    def lay_out(self, plan: Plan) -> None:
        """Reserve what all edges need."""
        for edge in self.edges:
            self.places(plan, edge)

    @abstractmethod
    def places(self, plan: Plan, edge: Edge) -> None:
        """Reserve what an edge needs in the regions of its two ends."""

    @abstractmethod
    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See Link."""

    @abstractmethod
    def incoming(self, edge: Edge) -> Array:
        """See Link."""

    @abstractmethod
    def move_out(self, edge: Edge, array: Array) -> Steps:
        """What the sender does for tensor number `sent[edge]`."""

    @abstractmethod
    def move_in(self, edge: Edge, arrival: Callable[[Array], None]) -> Steps:
        """What the receiver does for tensor number `taken[edge]`; gives the array to `arrival`."""

    def let_go(self, edge: Edge) -> None:
        """What a release does: tell the sender how many tensors are released."""
        self.tell_free(edge)

    def send(self, edge: Edge, array: Array) -> Handle:
        """See Link."""
        check_shape(edge, array.shape, array.dtype.name)
        self._expect(edge, edge.source)
        last = self._last.get(edge)
        if last is not None and not last.test():
            raise TransportError(f"the last tensor of edge {edge.name!r} is still under way")
        self.sent[edge] += 1
        cost = self.costs.of(edge)
        cost.tensors += 1
        cost.nbytes += array.nbytes
        sending = Sending(self.move_out(edge, array), self, edge.destination)
        self._last[edge] = sending
        self._start(sending, True)
        return sending

    def recv(self, edge: Edge) -> Arrival:
        """See Link."""
        self._expect(edge, edge.destination)
        if self._held[edge] < self.taken[edge]:
            raise TransportError(f"edge {edge.name!r} still holds the tensor before; release it first")
        self.taken[edge] += 1
        receiving: Receiving

        def arrived(array: Array) -> None:
            receiving.array = array

        receiving = Receiving(self.move_in(edge, arrived), self, edge.source)
        self._start(receiving, self.receiver_acts)
        return receiving

    def release(self, edge: Edge) -> None:
        """See Link."""
        if self._held[edge] == self.taken[edge]:
            raise TransportError(f"edge {edge.name!r} holds no tensor to release")
        self._held[edge] += 1
        self.let_go(edge)

    def advance(self) -> None:
        """See Link."""
        if self._active:
            self._active = [moving for moving in self._active if not moving.step()]

    def close(self) -> None:
        """See Link."""
        self._active, self._last = [], {}
        self.memory = np.empty(0, np.uint8)
        self.transport.deregister(self.region)

    def copy(self, edge: Edge, source: Array, target: Array) -> None:
        """Copy a payload and count it."""
        np.copyto(target, source)
        cost = self.costs.of(edge)
        cost.copies += 1
        cost.copied_bytes += source.nbytes

    def put(self, edge: Edge, start: int, nbytes: int, target: int, value: int) -> Handle:
        """Write own bytes with a value behind them into the receiver's region."""
        cost = self.costs.of(edge)
        cost.messages += 1
        cost.writes += 1
        return self.transport.write_flagged(self.memory[start : start + rounded(nbytes)], self.remote[edge.destination], target, value)

    def freed(self, edge: Edge) -> int:
        """How many tensors of an edge the receiver does not need any more, as told to its sender."""
        return self.transport.poll_word(self.region, self.plan.at(self.rank, ("freed", edge)))

    def tell_free(self, edge: Edge) -> None:
        """Tell the sender that all tensors so far are not needed any more."""
        self.costs.of(edge).releases += 1
        place = self.plan.at(edge.source, ("freed", edge))
        telling = self.transport.write_flagged(self.memory[:0], self.remote[edge.source], place, self.taken[edge])
        if not telling.test():
            self._active.append(Sending(until(telling), self, edge.source))

    def _start(self, moving: Moving, drive: bool) -> None:
        if not moving.step() and drive:
            self._active.append(moving)

    def _expect(self, edge: Edge, rank: int) -> None:
        if rank != self.rank or edge not in self.number:
            raise TransportError(f"rank {self.rank} has no such end of edge {edge.name!r} from {edge.source} to {edge.destination}")


def until(handle: Handle) -> Steps:
    """Steps that end with a handle."""
    while not handle.test():
        yield


def need_device(transport: Transport, mechanism: str) -> OneSided:
    """The transport as a device; raises TransportError for one that has no regions."""
    if not transport.capabilities.one_sided:
        raise TransportError(f"mechanism {mechanism!r} needs one-sided writes and reads, which {transport.capabilities.library} has not; use 'messages'")
    return cast(OneSided, transport)


def flag_place(nbytes: int) -> int:
    """Where the flag lies behind a payload."""
    return rounded(nbytes)


def flagged(nbytes: int) -> int:
    """Bytes of a payload with its flag."""
    return rounded(nbytes) + WORD
