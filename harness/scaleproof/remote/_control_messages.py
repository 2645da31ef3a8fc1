"""Short control messages between ranks, for RPC: two-sided sends if the device has them, otherwise fixed message
buffers for one message at a time, each acknowledged (as in TensorFlow's verbs transport)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from scaleproof.remote._region_plan import WORD, Plan, view
from scaleproof.transports.contract import Array, Handle, OneSided, Region, ShortMessages

Words = list[int]


class Control(Protocol):
    """Control messages to and from every peer, as words of 8 bytes."""

    def post(self, message: Words, peer: int) -> None:
        """Queue a message; it is sent when the buffer to the peer is free."""

    def advance(self) -> None:
        """Make progress; every message that has arrived is passed to the `on_message` of the constructor."""

    def settle(self) -> None:
        """Return when all messages of this rank have been sent."""


class MessageBuffers:
    """Over one-sided writes: a buffer per ordered pair of ranks in the receiver's region, and a word for its
    acknowledgement in the sender's."""

    def __init__(
        self,
        transport: OneSided,
        region: Region,
        plan: Plan,
        peers: Sequence[int],
        word_count: int,
        on_message: Callable[[int, Words], None],
    ) -> None:
        assert region.local is not None
        self._transport, self._region, self._plan = transport, region, plan
        self._nbytes, self._on_message = word_count * WORD, on_message
        rank = transport.rank
        self._remote = {peer: transport.remote(region, peer) for peer in peers}
        self._staging = {
            peer: _word_view(region.local, plan.offset(rank, ("staging", peer)), word_count) for peer in peers
        }
        self._arrivals = {
            peer: _word_view(region.local, plan.offset(rank, ("message", peer)), word_count) for peer in peers
        }
        self._queues: dict[int, deque[Words]] = {peer: deque() for peer in peers}
        self._posted, self._received = dict.fromkeys(peers, 0), dict.fromkeys(peers, 0)
        self._writing: list[Handle] = []

    @staticmethod
    def reserve(plan: Plan, rank: int, peer: int, word_count: int) -> None:
        """Reserve the space in rank `rank`'s region for messages from and to a peer."""
        plan.reserve(rank, ("staging", peer), word_count * WORD)
        plan.reserve(rank, ("message", peer), (word_count + 1) * WORD)
        plan.reserve(rank, ("acknowledged", peer), WORD)

    def post(self, message: Words, peer: int) -> None:
        """See Control."""
        self._queues[peer].append(message)
        self._push(peer)

    def advance(self) -> None:
        """See Control."""
        if self._writing:
            self._writing = [handle for handle in self._writing if not handle.test()]
        for peer, queue in self._queues.items():
            if queue:
                self._push(peer)
            offset = self._plan.offset(self._transport.rank, ("message", peer))
            if self._transport.poll_word(self._region, offset + self._nbytes) > self._received[peer]:
                message = [int(word) for word in self._arrivals[peer]]
                self._received[peer] += 1
                self._write(
                    peer,
                    self._arrivals[peer][:0],
                    self._plan.offset(peer, ("acknowledged", self._transport.rank)),
                    self._received[peer],
                )
                self._on_message(peer, message)

    def settle(self) -> None:
        """See Control."""
        for handle in self._writing:
            handle.wait()

    def _push(self, peer: int) -> None:
        acknowledged = self._transport.poll_word(
            self._region, self._plan.offset(self._transport.rank, ("acknowledged", peer))
        )
        if self._queues[peer] and acknowledged == self._posted[peer]:
            self._staging[peer][:] = self._queues[peer].popleft()
            self._posted[peer] += 1
            self._write(
                peer,
                self._staging[peer],
                self._plan.offset(peer, ("message", self._transport.rank)),
                self._posted[peer],
            )

    def _write(self, peer: int, source: Array, offset: int, value: int) -> None:
        handle = self._transport.write_flagged(source.view(np.uint8), self._remote[peer], offset, value)
        if not handle.test():
            self._writing.append(handle)


class TwoSidedMessages:
    """Over the device's sends into posted receives, which the device acknowledges."""

    def __init__(
        self, transport: ShortMessages, peers: Sequence[int], on_message: Callable[[int, Words], None]
    ) -> None:
        self._transport, self._peers, self._on_message = transport, peers, on_message

    def post(self, message: Words, peer: int) -> None:
        """See Control."""
        self._transport.post_message(np.array(message, np.uint64).tobytes(), peer)

    def advance(self) -> None:
        """See Control."""
        for peer in self._peers:
            message = self._transport.next_message(peer)
            if message is not None:
                self._on_message(peer, [int(word) for word in np.frombuffer(message, np.uint64)])

    def settle(self) -> None:
        """See Control: the device has the messages, and no memory of the channel is needed."""


def _word_view(memory: Array, offset: int, count: int) -> Array:
    return view(memory, offset, (count,), "uint64")
