"""One process per core of a node; all of them copy memory, or all multiply matrices, at the same time."""

from __future__ import annotations

import os
import struct
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from scaleproof.calibrate.matrix_product_rate import FLOP, products
from scaleproof.calibrate.memory_bandwidth import copies
from scaleproof.rank.process_lifetime import die_with_creator

WINDOW_S = 0.03
"""Seconds of one repetition. Where a quota of processor time is used up, it lasts until the quota is renewed."""
Kind = Literal["memory", "product"]
_RATE = struct.Struct("<d")


class Workers:
    """A context manager: workers are forked on entry; they end on exit, or with the process that forked them."""

    def __init__(self, cores: Sequence[int], nbytes: int) -> None:
        self.cores, self.nbytes = cores, nbytes
        self.pipes: list[tuple[int, int, int]] = []

    def __enter__(self) -> Workers:
        for core in self.cores:
            request_in, request_out = os.pipe()
            result_in, result_out = os.pipe()
            creator, pid = os.getpid(), os.fork()
            if pid == 0:
                parents_ends = [end for _, *ends in self.pipes for end in ends] + [request_out, result_in]
                _work(core, self.nbytes, request_in, result_out, creator, parents_ends)
            os.close(request_in)
            os.close(result_out)
            self.pipes.append((pid, request_out, result_in))
        return self

    def __exit__(self, *_: object) -> None:
        for pid, request_out, result_in in self.pipes:
            os.close(request_out)
            os.close(result_in)
            os.waitpid(pid, 0)

    def rate(self, kind: Kind) -> float:
        """One repetition by all cores at the same time: bytes copied, or floating-point operations, per second."""
        for _, request_out, _ in self.pipes:
            os.write(request_out, kind[:1].encode())
        results = [os.read(result_in, _RATE.size) for _, _, result_in in self.pipes]
        if not all(results):
            raise RuntimeError(f"a process that measures {kind} has ended")
        return float(sum(_RATE.unpack(result)[0] for result in results))


def _work(core: int, nbytes: int, request_in: int, result_out: int, creator: int, parents_ends: Sequence[int]) -> None:
    """The worker of one core; never returns. `parents_ends`: ends of pipes that it inherits and closes."""
    try:
        die_with_creator(creator)
        for end in parents_ends:
            os.close(end)
        os.sched_setaffinity(0, {core})
        source, target = np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
        kernels: dict[bytes, tuple[Iterator[float], float]] = {
            b"m": (copies(target, source), nbytes),
            b"p": (products(), FLOP),
        }
        while kind := os.read(request_in, 1):
            os.write(result_out, _RATE.pack(_rate(*kernels[kind])))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _rate(kernel: Iterator[float], work: float) -> float:
    """Work per second over a repetition, including pauses between its parts."""
    count, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < WINDOW_S:
        next(kernel)
        count += 1
    return work * count / elapsed
