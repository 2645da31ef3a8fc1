"""Measures the bounds of an all-reduce of two ranks and of a message between them whose buffers are plain: memory that
only one of the two processes has mapped; run as `python -m scaleproof.calibrate.plain_bandwidth BYTES...`.

There are two ways. Through shared pieces every byte that crosses is copied into a piece by one process and out of it by
the other, which is a pass more for each half of an all-reduce (memory_bandwidth.py has its other passes). Or the kernel
copies (process_vm_readv, process_vm_writev): the peer's half into a block that stays in the cache and is added from
there, and the sum into the peer's memory; a message is one such copy. Both processes do exactly this at once, block by
block, without synchronisation; the kernel also copies all of it in one call. The fastest of all repetitions and block
sizes counts; the bound is the faster way.
Messages are measured twice: the same one again and again (`copy`), and there and back in turns between two pairs of
arrays (`message`). A cache that holds one pair may not hold two.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from scaleproof.calibrate.memory_bandwidth import BLOCKS, LINE, meet
from scaleproof.rank.process_lifetime import die_with_creator
from scaleproof.transports._buffers import address_of
from scaleproof.transports.shm.private_memory import Consent, Counts, Peer, PrivateMemory, why_refused

REPETITIONS = 15
"""Of each way and block size."""
ITEM = 4
OFFERS = 2 * LINE
"""First of four words per process: process id, address of its array, address and content of its offered word."""
Step = Callable[[], object]


class Pieces(NamedTuple):
    """Shared memory for a block on its way, of each process."""

    halves: list[np.ndarray]
    sums: list[np.ndarray]


class Pair:
    """This process and its peer: `own` is private, `pieces` are shared, `private` is the peer's array as the kernel
    reaches it (None: the kernel refuses)."""

    def __init__(self, rank: int, most: int, shared: mmap.mmap, pieces: Pieces) -> None:
        self.rank, self.peer, self.pieces = rank, 1 - rank, pieces
        self.control = memoryview(shared).cast("Q")
        self._durations = memoryview(shared).cast("d")[8 * OFFERS :]
        self.own = np.zeros(2 * most // ITEM, np.float32)  # the second half receives what takes turns
        self.own[:] = 0  # touches every page
        consent = Consent()
        first = OFFERS + 4 * rank
        offer = (os.getpid(), address_of(self.own), *consent.offer)
        for word, value in enumerate(offer):
            self.control[first + word] = value
        self.meet()
        pid, self.address, *their_offer = self.control[OFFERS + 4 * self.peer : OFFERS + 4 * self.peer + 4]
        peers = [Peer(self.peer, pid)]
        self.control[OFFERS + 8 + rank] = bool(why_refused(peers, [their_offer]))
        self.meet()
        refused = any(self.control[OFFERS + 8 : OFFERS + 10])
        self.private = None if refused else PrivateMemory(peers, Counts(calls=0, nbytes=0))

    def reader(self, start: int, target: np.ndarray) -> Step:
        """A copy of the peer's elements from `start` on."""
        assert self.private is not None
        return self.private.reader(0, self.address + ITEM * start, target)

    def writer(self, start: int, source: np.ndarray) -> Step:
        """A copy into the peer's elements from `start` on."""
        assert self.private is not None
        return self.private.writer(0, self.address + ITEM * start, source)

    def meet(self) -> None:
        """A barrier of both."""
        meet(self.rank, self.control[: 2 * LINE])

    def fastest(self, programs: Iterable[Sequence[list[Step]]]) -> float:
        """Seconds of the slower process in the fastest repetition of several programs. Each has lists of steps that
        take turns."""
        best = float("inf")
        for turns in programs:
            for repetition in range(REPETITIONS * len(turns)):
                self.meet()
                began = time.perf_counter()
                for step in turns[repetition % len(turns)]:
                    step()
                self._durations[self.rank] = time.perf_counter() - began
                self.meet()
                best = min(best, max(self._durations[:2]))
        return best


def reduced_through_pieces(pair: Pair, count: int, block: int) -> Iterator[Step]:
    """An all-reduce of `count` elements, of which each process adds half."""
    pieces = pair.pieces
    for mine, theirs in _halves(pair, count, block):
        size = mine.stop - mine.start
        yield partial(np.copyto, pieces.halves[pair.rank][:size], pair.own[theirs])
        yield partial(np.add, pair.own[mine], pieces.halves[pair.peer][:size], pair.own[mine])
        yield partial(np.copyto, pieces.sums[pair.rank][:size], pair.own[mine])
        yield partial(np.copyto, pair.own[theirs], pieces.sums[pair.peer][:size])


def reduced_by_the_kernel(pair: Pair, count: int, block: int) -> Iterator[Step]:
    """The same, with copies by the kernel."""
    fetched = np.zeros(block // ITEM, np.float32)
    for mine, _ in _halves(pair, count, block):
        own, arrived = pair.own[mine], fetched[: mine.stop - mine.start]
        yield pair.reader(mine.start, arrived)
        yield partial(np.add, own, arrived, own)
        yield pair.writer(mine.start, own)


def moved_through_pieces(pair: Pair, count: int, block: int, sender: int = 0, first: int = 0) -> Iterator[Step]:
    """A message of `count` elements: the sender copies into a piece, the other process out of it, to its elements from
    `first` on."""
    for part in _blocks(count, block):
        piece = pair.pieces.halves[sender][: part.stop - part.start]
        if pair.rank == sender:
            yield partial(np.copyto, piece, pair.own[part])
        else:
            yield partial(np.copyto, pair.own[first + part.start : first + part.stop], piece)


def moved_by_the_kernel(pair: Pair, count: int, block: int, sender: int = 0, first: int = 0) -> Iterator[Step]:
    """The same, copied by the kernel in the process that receives."""
    if pair.rank != sender:
        for part in _blocks(count, block):
            yield pair.reader(part.start, pair.own[first + part.start : first + part.stop])


Way = Callable[..., Iterator[Step]]


def once(way: Way, pair: Pair, count: int, block: int) -> list[list[Step]]:
    """The same steps in every repetition."""
    return [list(way(pair, count, block))]


def there_and_back(way: Way, pair: Pair, count: int, block: int) -> list[list[Step]]:
    """Messages in both directions, in turns; each has a source and a target of its own."""
    return [list(way(pair, count, block, sender, count)) for sender in range(2)]


REDUCED: dict[str, Way] = {"pieces": reduced_through_pieces, "kernel": reduced_by_the_kernel}
MOVED: dict[str, Way] = {"pieces": moved_through_pieces, "kernel": moved_by_the_kernel}
MEASURED = {"all_reduce": (once, REDUCED), "copy": (once, MOVED), "message": (there_and_back, MOVED)}


def blocks(way: str, size: int) -> tuple[int, ...]:
    """Bytes of the blocks that are tried for `size` bytes. Every call of the kernel looks up its pages anew, so one
    call for all of it may be the fastest; pieces are fast because they stay in the cache."""
    return BLOCKS if way == "pieces" else (*BLOCKS, size)


def _blocks(count: int, block: int) -> Iterator[slice]:
    step = max(block // ITEM, 1)
    return (slice(at, min(at + step, count)) for at in range(0, count, step))


def _halves(pair: Pair, count: int, block: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of the half that this process adds, and of the half that its peer adds."""
    half = count // 2
    for part in _blocks(half, block):
        mine, theirs = (slice(rank * half + part.start, rank * half + part.stop) for rank in (pair.rank, pair.peer))
        yield mine, theirs


def main() -> None:
    """Print seconds per size of each operation, {"all_reduce": {size: s}, "copy": ..., "message": ...}, and of each of
    its ways, "ways": {operation: {way: {size: s}}}; way `kernel` is missing where the kernel refuses to copy."""
    sizes = [int(word) for word in sys.argv[1:]]
    shared, areas = mmap.mmap(-1, mmap.PAGESIZE), [mmap.mmap(-1, max(BLOCKS)) for _ in range(4)]
    arrays = [np.frombuffer(area, np.float32) for area in areas]
    creator = os.getpid()
    child = os.fork()
    if not child:
        die_with_creator(creator)
    pair = Pair(0 if child else 1, max(sizes), shared, Pieces(arrays[:2], arrays[2:]))
    ways = {
        operation: {
            name: {
                size: pair.fastest(turns(way, pair, size // ITEM, block) for block in blocks(name, size))
                for size in sizes
            }
            for name, way in each.items()
            if name == "pieces" or pair.private is not None
        }
        for operation, (turns, each) in MEASURED.items()
    }
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    best = {
        operation: {size: min(way[size] for way in each.values()) for size in sizes} for operation, each in ways.items()
    }
    json.dump(best | {"ways": ways}, sys.stdout)


if __name__ == "__main__":
    main()
