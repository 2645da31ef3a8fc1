"""Measures the memory bound of an all-reduce of two ranks: both do only its additions and copies, on memory that both
have mapped; run as `python -m scaleproof.calibrate.memory_bandwidth BYTES...`.

With 2 ranks, n bytes and no synchronisation each process must add half of the array (read two halves, write one) and
copy the sum to the other (write one half). Both processes do so at the same time, block by block, so that the copy
finds the sum in its cache. The fastest of all repetitions and block sizes counts: a median would hold unlucky pages,
and a faster transport would be above it. No in-place all-reduce of 2 ranks can do less work.
Also measured: one copy of n bytes by one process alone.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
from collections.abc import Iterator
from itertools import islice

import numpy as np

from scaleproof.rank.process_lifetime import die_with_creator

BLOCKS = (32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10)
LINE = 8
"""Words of a cache line."""
REPETITIONS = 30
"""Of each block size, and of the copy."""


def main() -> None:
    """Print seconds per size: {"all_reduce": {size: s}, "copy": {size: s}}."""
    sizes = [int(word) for word in sys.argv[1:]]
    shared = mmap.mmap(-1, mmap.PAGESIZE)
    control, durations = memoryview(shared).cast("Q")[: 2 * LINE], memoryview(shared).cast("d")[2 * LINE :]
    memories = [mmap.mmap(-1, max(sizes)) for _ in range(2)]
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
    alone = {size: copy_seconds(arrays[0][: size // 4], arrays[1][: size // 4]) for size in sizes}
    json.dump({"all_reduce": both, "copy": alone}, sys.stdout)


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
