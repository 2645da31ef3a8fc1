"""Measures the memory bound of an all-reduce of two ranks: both do only its additions and copies, on memory that both
have mapped; run as `python -m scaleproof.calibrate.memory_bandwidth BYTES...`.

With 2 ranks, n bytes and no synchronisation each process must add half of the array (read two halves, write one) and
copy the sum to the other (write one half). Both processes do so at the same time, block by block, so that the copy
finds the sum in its cache. The fastest of all repetitions and block sizes counts: a median would hold unlucky pages,
and a faster transport would be above it. No in-place all-reduce of 2 ranks can do less work.
Also measured: one copy of n bytes by one process alone, again and again on the same memory; and copies that take turns
on two pairs of arrays, as messages there and back do. A cache that holds one pair may not hold two.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
from collections.abc import Iterator
from itertools import chain, islice

import numpy as np

from scaleproof.rank.process_lifetime import die_with_creator

BLOCKS = (32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10)
LINE = 8
"""Words of a cache line."""
REPETITIONS = 30
"""Of each block size, and of the copy."""


def main() -> None:
    """Print seconds per size: {"all_reduce": {size: s}, "copy": {size: s}, "message": {size: s}}."""
    sizes = [int(word) for word in sys.argv[1:]]
    shared = mmap.mmap(-1, mmap.PAGESIZE)
    control, durations = memoryview(shared).cast("Q")[: 2 * LINE], memoryview(shared).cast("d")[2 * LINE :]
    memories = [mmap.mmap(-1, max(sizes)) for _ in range(4)]
    for memory in memories:
        # Huge pages as in transport shm; a kernel without them gives small pages to both.
        memory.madvise(mmap.MADV_HUGEPAGE)
    arrays = [np.frombuffer(memory, np.float32) for memory in memories]
    for array in arrays:
        array[:] = 0
    creator = os.getpid()
    child = os.fork()
    if not child:
        die_with_creator(creator)
    rank = 0 if child else 1
    both = {size: all_reduce_seconds(rank, arrays[rank], arrays[1 - rank], size, control, durations) for size in sizes}
    if rank:
        os._exit(0)
    os.waitpid(child, 0)
    alone, turns = dict[int, float](), dict[int, float]()
    for size in sizes:
        there, back = ((arrays[index][: size // 4], arrays[index + 1][: size // 4]) for index in (0, 2))
        alone[size], turns[size] = copy_seconds(*there), message_seconds(there, back)
    json.dump({"all_reduce": both, "copy": alone, "message": turns}, sys.stdout)


def all_reduce_seconds(
    rank: int, own: np.ndarray, other: np.ndarray, nbytes: int, control: memoryview, durations: memoryview[float]
) -> float:
    """The slower process of the fastest repetition, of all block sizes."""
    half = nbytes // 8
    start, best = rank * half, float("inf")
    for block in BLOCKS:
        step = min(block // 4, half)
        pairs = [
            (own[at : min(at + step, start + half)], other[at : min(at + step, start + half)])
            for at in range(start, start + half, step)
        ]
        for _ in range(REPETITIONS):
            meet(rank, control)
            began = time.perf_counter()
            for mine, theirs in pairs:
                np.add(mine, theirs, out=mine)
                np.copyto(theirs, mine)
            durations[rank] = time.perf_counter() - began
            meet(rank, control)
            best = min(best, max(durations[:2]))
    return best


def copy_seconds(target: np.ndarray, source: np.ndarray) -> float:
    """The fastest copy, in s."""
    return min(islice(copies(target, source), REPETITIONS))


def message_seconds(there: tuple[np.ndarray, np.ndarray], back: tuple[np.ndarray, np.ndarray]) -> float:
    """The fastest copy of two that take turns, in s. Each is a target and a source."""
    turns = zip(copies(*there), copies(*back), strict=True)
    return min(islice(chain.from_iterable(turns), 2 * REPETITIONS))


def copies(target: np.ndarray, source: np.ndarray) -> Iterator[float]:
    """Endless: the time in s of one copy after the other."""
    while True:
        start = time.perf_counter()
        np.copyto(target, source)
        yield time.perf_counter() - start


def meet(rank: int, control: memoryview) -> None:
    """A barrier of two processes."""
    control[rank * LINE] += 1
    while control[(1 - rank) * LINE] < control[rank * LINE]:
        os.sched_yield()


if __name__ == "__main__":
    main()
