"""A mailbox whose regions and flags peers reach by the transport's one-sided operations, without this rank's help.

Before it puts, a rank raises one of its words beside the region, and after that another one. A get reads the words of
the second kind, the region, and the words of the first kind: where both agree, no put was under way meanwhile. A reader
that finds no such moment asks the writers to pause. A flag is the sum of a word of each writer and one that
compare-and-swaps change: where ranks can exclude each other (shm), the rank that swaps, else the owner's passive side.
Regions in other memory than that of `memory` are reached by messages, and so are then the flags of whoever puts into
them, which keeps their order.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from scaleproof.transports._exposed import FLAGS, WORD, Owner, placed, reached, told, words_of
from scaleproof.transports._exposed_access import Access
from scaleproof.transports._mailbox_core import EMPTY
from scaleproof.transports._mailbox_frames import ANSWER, PAUSE, RESUME, SLOT, Frame
from scaleproof.transports.contract import Handle, OneSided, Region
from scaleproof.transports.mailbox import Posted, Serve
from scaleproof.transports.mailbox_contract import Excluding, ExposesMemory
from scaleproof.transports.message_mailbox import MessageMailbox, Outgoing

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

TRIES = 8
"""Reads that puts disturb before the reader asks for a pause."""
BEYOND = -1
"""In place of a slot: the owner has none left."""
Key = tuple[int, str]
"""Owner and name of a region."""


class OneSidedMailbox(MessageMailbox):
    """See transports/mailbox.py."""

    def __init__(self, context: RankContext) -> None:
        super().__init__(context)
        self._exposing = cast(ExposesMemory, self.transport)
        self._access = Access(self.rank, cast(OneSided, self.transport), self._exposing, self._complete)
        self._counts = context.facts["one_sided"] = {"puts": 0, "gets": 0}
        """How often this rank has reached peers' regions without their help."""
        self._memories: list[Region] = []
        self._owners: list[Owner] = []
        self._putting: set[Key] = set()
        self._wanting: Counter[Key] = Counter()
        """Puts that wait for the end of another one or of pauses."""
        self._pauses: Counter[Key] = Counter()
        """Readers for which this rank puts nothing into a region."""
        self._questions: dict[Key, list[tuple[int, int]]] = defaultdict(list)
        """Readers that want a pause, and the number of their question: after the put that was there first."""
        self._by_message: set[int] = set()
        """Peers into whose regions this rank has put by messages."""
        self._swapping = threading.Lock()
        self._awaiting, self._seen = 0, 0

    def memory(self, nbytes: int) -> np.ndarray:
        """See Mailbox.memory."""
        with self._turn:
            self._memories.append(self._exposing.expose(max(nbytes, WORD)))
        local = self._memories[-1].local
        assert local is not None
        return local[:nbytes]

    def open(self, serve: Serve, regions: Mapping[str, np.ndarray]) -> None:
        """See Mailbox.open."""
        places, device = placed(regions, self._memories), self._exposing
        own = device.expose(WORD * words_of(len(places), self.world_size))
        assert own.local is not None
        self._words = own.local.view(np.int64)
        what = told(own, self._memories, places, device)
        everyone = self._rendezvous.exchange("mailbox.memory", self.rank, self.world_size, what)
        self._owners = [
            Owner(self.rank, self.world_size, own, self._memories, places)
            if rank == self.rank
            else reached(rank, self.world_size, told_by_it, device)
            for rank, told_by_it in enumerate(everyone)
        ]
        self._shapes = [owner.shapes() for owner in self._owners]
        super().open(serve, regions)

    def put(self, value: np.ndarray, peer: int, region: str, start: int) -> None:
        """See Mailbox.put."""
        owner = self._owners[peer]
        if region not in owner.places:
            self._by_message.add(peer)
            super().put(value, peer, region, start)
            return
        self._shapes[peer].target(self.rank, region, start, value)
        self.traffic.count(value.nbytes)
        key = peer, region
        with self._changed:
            self._counts["puts"] += peer != self.rank
            self._wanting[key] += 1
        self._until(lambda: self._may_put(key), peer)
        try:
            self._access.put(owner, owner.places[region], start, value)
        finally:
            with self._changed:
                self._putting.remove(key)
                questions = self._questions.pop(key, [])
                self._pauses[key] += len(questions)
                self._changed.notify_all()
            for reader, number in questions:
                self._begin(reader, Frame(ANSWER, EMPTY, number=number))

    def get(self, peer: int, region: str, start: int, count: int) -> np.ndarray:
        """See Mailbox.get."""
        owner = self._owners[peer]
        if region not in owner.places:
            return super().get(peer, region, start, count)
        part = self._shapes[peer].part(self.rank, "gets", region, start, count)
        with self._changed:
            self._counts["gets"] += peer != self.rank
        for _ in range(TRIES):
            if (value := self._access.get(owner, owner.places[region], start, part.size)) is not None:
                return value
        return self._get_in_pause(owner, region, start, part.size)

    def flag(self, peer: int, name: str, add: int) -> None:
        """See Mailbox.flag."""
        owner, slot = self._owners[peer], self._slot_of(peer, name)
        if slot == BEYOND or peer == self.rank or peer in self._by_message:
            super().flag(peer, name, add)
            return
        with owner.raising:  # a lane may raise it, too
            owner.raised[slot] += add
            self._access.raise_word(owner, owner.flag(self.rank, slot), owner.raised[slot])

    def compare_and_swap(self, peer: int, name: str, expected: int, new: int) -> int:
        """See Mailbox.compare_and_swap."""
        slot = self._slot_of(peer, name)
        if slot == BEYOND or peer in self._by_message or not isinstance(self.transport, Excluding):
            return super().compare_and_swap(peer, name, expected, new)
        return self._swap_words(self._owners[peer], slot, expected, new)

    def await_flag(self, name: str, least: int, posted: Posted | None = None) -> int | None:
        """See Mailbox.await_flag."""
        with self._changed:
            self._awaiting += 1
        try:
            return super().await_flag(name, least, posted)
        finally:
            with self._changed:
                self._awaiting -= 1

    def _push(self, peer: int, frame: Frame) -> None:
        self._access.settle(self._owners[peer])
        super()._push(peer, frame)

    def _slot_of(self, peer: int, name: str) -> int:
        """The slot of a flag, which its owner gives."""
        slots = self._owners[peer].slots
        if name not in slots:
            slots[name] = (
                self._own_slot(name) if peer == self.rank else int(self._answer_of(peer, SLOT, EMPTY, name)[0])
            )
        return slots[name]

    def _own_slot(self, name: str) -> int:
        with self._changed:
            slots = self._owners[self.rank].slots
            return slots.setdefault(name, len(slots) if len(slots) < FLAGS else BEYOND)

    def _flag(self, name: str) -> int:
        owner = self._owners[self.rank]
        slot = owner.slots.get(name, BEYOND)
        return super()._flag(name) if slot == BEYOND else int(self._access.flag(owner, slot).sum())

    def _add(self, flag: str, add: int) -> None:
        if (slot := self._own_slot(flag)) == BEYOND:
            super()._add(flag, add)
            return
        with self._changed:
            self._words[self._owners[self.rank].flag(self.rank, slot)] += add
            self._changed.notify_all()

    def _swap(self, name: str, expected: int, new: int) -> np.ndarray:
        if (slot := self._own_slot(name)) == BEYOND:
            return super()._swap(name, expected, new)
        return np.array([self._swap_words(self._owners[self.rank], slot, expected, new)])

    def _swap_words(self, owner: Owner, slot: int, expected: int, new: int) -> int:
        """As one step: nobody else changes the flag's first word."""
        device = self.transport
        with device.exclusive(owner.rank) if isinstance(device, Excluding) else self._swapping:
            words = self._access.flag(owner, slot)
            old = int(words.sum())
            if old == expected:
                self._access.raise_word(owner, owner.swapped(slot), int(words[0]) + new - old)
                self._access.settle(owner)  # while no other rank may change the word
        with self._changed:
            self._changed.notify_all()
        return old

    def _deliver(self, peer: int, frame: Frame) -> None:
        key = frame.tag, frame.name
        if frame.kind == SLOT:
            self._ask(peer, frame.number, lambda: np.array([self._own_slot(frame.name)]))
        elif frame.kind == PAUSE:
            with self._changed:
                now = self._may_pause(key)
                if not now:
                    self._questions[key].append((peer, frame.number))
            if now:
                self._begin(peer, Frame(ANSWER, EMPTY, number=frame.number))
        elif frame.kind == RESUME:
            with self._changed:
                self._pauses[key] -= 1
                self._changed.notify_all()
        else:
            super()._deliver(peer, frame)

    def _advance(self) -> bool:
        """Also looks whether a flag that is waited for was raised."""
        moved = super()._advance()
        if self._awaiting and (now := int(self._words.sum())) != self._seen:
            self._seen, moved = now, True
            with self._changed:
                self._changed.notify_all()
        return moved

    def _complete(self, peer: int, calls: Callable[[], Sequence[Handle]]) -> None:
        """Starts calls, and waits until they are done."""
        with self._turn:
            outgoing = Outgoing(peer, list(calls()), [])
            if not outgoing.test():
                self._outgoing.append(outgoing)
        if not outgoing.done:
            self._until(lambda: self._has_gone(outgoing), peer)

    def _may_put(self, key: Key) -> bool | None:
        """One thread at a time, and in no pause."""
        if key in self._putting or self._pauses[key]:
            return None
        self._putting.add(key)
        self._wanting[key] -= 1
        return True

    def _may_pause(self, key: Key) -> bool | None:
        """After the puts that are under way or wait: else readers could hold back a writer for ever."""
        if key in self._putting or self._wanting[key]:
            return None
        self._pauses[key] += 1
        return True

    def _get_in_pause(self, owner: Owner, region: str, start: int, count: int) -> np.ndarray:
        key = owner.rank, region
        for rank in range(self.world_size):  # in one order, so that no two readers wait for each other
            if rank == self.rank:
                self._until(lambda: self._may_pause(key), self.rank)
            else:
                self._answer_of(rank, PAUSE, EMPTY, region, owner.rank)
        value = None
        while value is None:  # the last put may still be on its way
            value = self._access.get(owner, owner.places[region], start, count)
        for peer in self._peers:
            self._push(peer, Frame(RESUME, EMPTY, owner.rank, region))
        with self._changed:
            self._pauses[key] -= 1
            self._changed.notify_all()
        return value
