"""One process for each core of a node, which all copy memory or all multiply matrices at once."""

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
"""Seconds of one repetition. Where a quota of processor time has been used up, it lasts until there is some again."""
Kind = Literal["memory", "product"]
_RATE = struct.Struct("<d")


class Workers:
    """Forked when entered; they end when left, or with the process that forked them."""

    def __init__(self, cores: Sequence[int], nbytes: int) -> None:
        self.cores, self.nbytes = cores, nbytes
        self.pipes: list[tuple[int, int, int]] = []

    def __enter__(self) -> Workers:
        for core in self.cores:
            (asked, ask), (answer, answered), creator = os.pipe(), os.pipe(), os.getpid()
            pid = os.fork()
            if pid == 0:
                _work(
                    core,
                    self.nbytes,
                    asked,
                    answered,
                    creator,
                    [end for _, *ends in self.pipes for end in ends] + [ask, answer],
                )
            os.close(asked)
            os.close(answered)
            self.pipes.append((pid, ask, answer))
        return self

    def __exit__(self, *_: object) -> None:
        for pid, ask, answer in self.pipes:
            os.close(ask)
            os.close(answer)
            os.waitpid(pid, 0)

    def rate(self, kind: Kind) -> float:
        """Of one repetition by all cores at once: bytes copied, or floating-point operations, per second."""
        for _, ask, _ in self.pipes:
            os.write(ask, kind[:1].encode())
        answers = [os.read(answer, _RATE.size) for _, _, answer in self.pipes]
        if not all(answers):
            raise RuntimeError(f"a process that measures {kind} has ended")
        return float(sum(_RATE.unpack(answer)[0] for answer in answers))


def _work(core: int, nbytes: int, asked: int, answered: int, creator: int, others: Sequence[int]) -> None:
    """Never returns."""
    try:
        die_with_creator(creator)
        for end in others:
            os.close(end)
        os.sched_setaffinity(0, {core})
        source, target = np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
        kernels: dict[bytes, tuple[Iterator[float], float]] = {
            b"m": (copies(target, source), nbytes),
            b"p": (products(), FLOP),
        }
        while kind := os.read(asked, 1):
            os.write(answered, _RATE.pack(_rate(*kernels[kind])))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _rate(kernel: Iterator[float], work: float) -> float:
    """Work per second over a repetition, pauses between its parts included."""
    count, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < WINDOW_S:
        next(kernel)
        count += 1
    return work * count / elapsed
