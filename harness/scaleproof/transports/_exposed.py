"""The exposed memory of a rank's mailbox, as the rank and its peers reach it: regions, and words beside them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scaleproof.transports._buffers import address_of
from scaleproof.transports.contract import Region
from scaleproof.transports.mailbox import Regions
from scaleproof.transports.mailbox_contract import ExposesMemory

FLAGS = 256
"""Flags of a rank that are words; further ones are kept by its passive side."""
WORD = 8
"""Bytes of a word."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a region lies. `number`: of its words; `memory`: of its memory among the rank's; `start`: in bytes."""

    number: int
    memory: int
    start: int
    dtype: str
    count: int


def placed(regions: Mapping[str, np.ndarray], memories: Sequence[Region]) -> dict[str, Place]:
    """The regions that lie in exposed memory."""
    found: dict[str, Place] = {}
    for name, array in regions.items():
        for number, memory in enumerate(memories):
            assert memory.local is not None
            start = address_of(array) - address_of(memory.local)
            if array.flags.c_contiguous and 0 <= start <= start + array.nbytes <= memory.nbytes:
                found[name] = Place(len(found), number, start, array.dtype.name, array.size)
                break
    return found


def words_of(regions: int, world_size: int) -> int:
    """Words of a rank with so many regions."""
    return 2 * regions * world_size + (world_size + 1) * FLAGS


@dataclass(slots=True)
class Owner:
    """A rank whose memory this rank reaches; it may be this rank. `puts`: of this rank into each region, by number.
    `slots`: of flags, by name; `raised`: what this rank has added to each."""

    rank: int
    world_size: int
    words: Region
    memories: list[Region]
    places: dict[str, Place]
    puts: dict[int, int] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    raised: Counter[int] = field(default_factory=Counter)
    raising: threading.Lock = field(default_factory=threading.Lock)
    last: tuple[int, int] | None = None
    """The word that was written last, and its value, if it may not have arrived."""

    def shapes(self) -> Regions:
        """Checks what is put and got as the owner's own would."""
        return Regions(
            self.rank,
            {name: np.broadcast_to(np.zeros((), each.dtype), each.count) for name, each in self.places.items()},
        )

    def after(self, number: int, writer: int) -> int:
        """The word that a writer raises after a put."""
        return 2 * number * self.world_size + writer

    def before(self, number: int, writer: int) -> int:
        """The word that a writer raises before a put."""
        return (2 * number + 1) * self.world_size + writer

    def swapped(self, slot: int) -> int:
        """The word of a flag that compare-and-swaps change; all words of a flag are one row of ranks apart."""
        return 2 * len(self.places) * self.world_size + slot * (self.world_size + 1)

    def flag(self, writer: int, slot: int) -> int:
        """The word of a flag that a writer alone adds to."""
        return self.swapped(slot) + 1 + writer


def told(words: Region, memories: Sequence[Region], places: Mapping[str, Place], device: ExposesMemory) -> Any:
    """What peers are told."""
    described = {name: [each.number, each.memory, each.start, each.dtype, each.count] for name, each in places.items()}
    return [device.ticket(words), [device.ticket(memory) for memory in memories], described]


def reached(rank: int, world_size: int, what: Any, device: ExposesMemory) -> Owner:
    """The memory of a peer, from what it told."""
    words, memories, described = what
    return Owner(
        rank,
        world_size,
        device.reach(words, rank),
        [device.reach(memory, rank) for memory in memories],
        {name: Place(*each) for name, each in described.items()},
    )
