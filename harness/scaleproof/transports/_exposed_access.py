"""Puts, gets and words in the exposed memory of mailboxes, by a transport's one-sided operations; in this rank's own
memory by plain stores and loads, which x86-64 keeps in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scaleproof.transports._buffers import as_bytes
from scaleproof.transports._exposed import WORD, Owner, Place
from scaleproof.transports._mailbox_core import EMPTY
from scaleproof.transports.contract import Handle, OneSided, Region
from scaleproof.transports.mailbox_contract import ExposesMemory

UNSIGNED = (1 << 64) - 1
Complete = Callable[[int, Callable[[], Sequence[Handle]]], None]
"""Starts calls to a rank, one thread at a time, and waits until they are done."""


class Access:
    """The one-sided operations of a rank. `device`, `exposing`: its transport."""

    def __init__(self, rank: int, device: OneSided, exposing: ExposesMemory, complete: Complete) -> None:
        self._rank, self._device, self._exposing, self._complete = rank, device, exposing, complete

    def raise_word(self, owner: Owner, word: int, value: int) -> None:
        """Sets a word, after all that this rank has written there before."""
        if owner.rank == self._rank:
            _words(owner.words)[word] = value
            return
        self._complete(owner.rank, lambda: [self._flagged(owner, word, value)])
        owner.last = word, value

    def put(self, owner: Owner, place: Place, start: int, value: np.ndarray) -> None:
        """Writes from an element on, between the words that tell readers so."""
        number = owner.puts[place.number] = owner.puts.get(place.number, 0) + 1
        before, after = owner.before(place.number, self._rank), owner.after(place.number, self._rank)
        memory, offset = owner.memories[place.memory], place.start + start * value.itemsize
        if owner.rank == self._rank:
            _words(owner.words)[before] = number
            _bytes(memory)[offset : offset + value.nbytes] = as_bytes(value)
            _words(owner.words)[after] = number
            return

        def calls() -> Sequence[Handle]:
            first = self._flagged(owner, before, number)
            self._exposing.order_writes()
            data = self._device.write(value, memory, offset) if value.size else first
            return [first, data, self._flagged(owner, after, number)]

        self._complete(owner.rank, calls)
        owner.last = after, number

    def get(self, owner: Owner, place: Place, start: int, count: int) -> np.ndarray | None:
        """A copy of some elements; None where a put was under way."""
        value = np.empty(count, place.dtype)
        puts_ended = self._read(owner, owner.words, WORD * owner.after(place.number, 0), _row(owner))
        self._read(owner, owner.memories[place.memory], place.start + start * value.itemsize, value)
        puts_begun = self._read(owner, owner.words, WORD * owner.before(place.number, 0), _row(owner))
        return value if np.array_equal(puts_ended, puts_begun) else None

    def flag(self, owner: Owner, slot: int) -> np.ndarray:
        """The words of a flag, whose sum is its value: that of compare-and-swaps first."""
        return self._read(owner, owner.words, WORD * owner.swapped(slot), np.empty(owner.world_size + 1, np.int64))

    def settle(self, owner: Owner) -> None:
        """Waits until all that this rank has written has arrived: a transport may say that it is done before."""
        while (last := owner.last) is not None:
            found = self._read(owner, owner.words, WORD * last[0], np.empty(1, np.int64))[0]
            if found == last[1] and owner.last is last:  # else another thread has written more
                owner.last = None

    def _flagged(self, owner: Owner, word: int, value: int) -> Handle:
        return self._device.write_flagged(EMPTY, owner.words, WORD * word, value & UNSIGNED)

    def _read(self, owner: Owner, memory: Region, offset: int, target: np.ndarray) -> np.ndarray:
        if owner.rank == self._rank:
            as_bytes(target)[:] = _bytes(memory)[offset : offset + target.nbytes]
        elif target.size:
            self._complete(owner.rank, lambda: [self._device.read(memory, target, offset)])
        return target


def _row(owner: Owner) -> np.ndarray:
    """Room for a word of each writer."""
    return np.empty(owner.world_size, np.int64)


def _bytes(memory: Region) -> np.ndarray:
    assert memory.local is not None
    return memory.local


def _words(memory: Region) -> np.ndarray:
    return _bytes(memory).view(np.int64)
