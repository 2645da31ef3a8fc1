"""Short control messages between ranks, for RPC: fixed message buffers, one message at a time per channel, each
acknowledged (as TensorFlow's verbs transport does), or two-sided sends where the device has them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from scaleproof.remote._region_plan import WORD, Plan, view
from scaleproof.transports.contract import Array, Handle, OneSided, Region, TwoSided

Words = list[int]


class Control(Protocol):
    """A channel to and from every peer."""

    def post(self, words: Words, peer: int) -> None:
        """Queue a message; it leaves when the channel is free."""

    def advance(self) -> None:
        """Move what can move; messages that came are given to the receiver that the channel was made with."""

    def settle(self) -> None:
        """Return when nothing of this rank is on its way any more."""


class MessageBuffers:
    """Over one-sided writes: a buffer per ordered pair in the receiver's region, a word for its acknowledgement in the
    sender's."""

    def __init__(
        self,
        transport: OneSided,
        region: Region,
        plan: Plan,
        peers: Sequence[int],
        words: int,
        take: Callable[[int, Words], None],
    ) -> None:
        assert region.local is not None
        self._transport, self._region, self._plan = transport, region, plan
        self._nbytes, self._take = words * WORD, take
        here = transport.rank
        self._remote = {peer: transport.remote(region, peer) for peer in peers}
        self._staging = {peer: _words(region.local, plan.at(here, ("staging", peer)), words) for peer in peers}
        self._arrivals = {peer: _words(region.local, plan.at(here, ("message", peer)), words) for peer in peers}
        self._queues: dict[int, deque[Words]] = {peer: deque() for peer in peers}
        self._posted, self._taken = dict.fromkeys(peers, 0), dict.fromkeys(peers, 0)
        self._writing: list[Handle] = []

    @staticmethod
    def places(plan: Plan, here: int, peer: int, words: int) -> None:
        """What a pair of ranks needs in the region of one of them."""
        plan.put(here, ("staging", peer), words * WORD)
        plan.put(here, ("message", peer), (words + 1) * WORD)
        plan.put(here, ("acknowledged", peer), WORD)

    def post(self, words: Words, peer: int) -> None:
        """See Control."""
        self._queues[peer].append(words)
        self._push(peer)

    def advance(self) -> None:
        """See Control."""
        if self._writing:
            self._writing = [handle for handle in self._writing if not handle.test()]
        for peer, queue in self._queues.items():
            if queue:
                self._push(peer)
            place = self._plan.at(self._transport.rank, ("message", peer))
            if self._transport.poll_word(self._region, place + self._nbytes) > self._taken[peer]:
                words = [int(word) for word in self._arrivals[peer]]
                self._taken[peer] += 1
                self._write(
                    peer,
                    self._arrivals[peer][:0],
                    self._plan.at(peer, ("acknowledged", self._transport.rank)),
                    self._taken[peer],
                )
                self._take(peer, words)

    def settle(self) -> None:
        """See Control."""
        for handle in self._writing:
            handle.wait()

    def _push(self, peer: int) -> None:
        acknowledged = self._transport.poll_word(
            self._region, self._plan.at(self._transport.rank, ("acknowledged", peer))
        )
        if self._queues[peer] and acknowledged == self._posted[peer]:
            self._staging[peer][:] = self._queues[peer].popleft()
            self._posted[peer] += 1
            self._write(
                peer, self._staging[peer], self._plan.at(peer, ("message", self._transport.rank)), self._posted[peer]
            )

    def _write(self, peer: int, source: Array, place: int, value: int) -> None:
        handle = self._transport.write_flagged(source.view(np.uint8), self._remote[peer], place, value)
        if not handle.test():
            self._writing.append(handle)


class TwoSidedMessages:
    """Over the device's sends into posted receives, which acknowledge in hardware."""

    def __init__(self, transport: TwoSided, peers: Sequence[int], take: Callable[[int, Words], None]) -> None:
        self._transport, self._peers, self._take = transport, peers, take

    def post(self, words: Words, peer: int) -> None:
        """See Control."""
        self._transport.post_message(np.array(words, np.uint64).tobytes(), peer)

    def advance(self) -> None:
        """See Control."""
        for peer in self._peers:
            message = self._transport.next_message(peer)
            if message is not None:
                self._take(peer, [int(word) for word in np.frombuffer(message, np.uint64)])

    def settle(self) -> None:
        """See Control: the device has taken them, and no memory of the channel is needed."""


def _words(memory: Array, place: int, words: int) -> Array:
    return view(memory, place, (words,), "uint64")
