"""What one process alone copies, by the same loop that calibration takes its bound from: the arm beside which a one-way
rate is read."""

from __future__ import annotations

import mmap

import numpy as np

from scaleproof.calibrate.memory_bandwidth import copy_seconds
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark
from scaleproof.programs.payload import differing, pattern
from scaleproof.spec.case import OwnCase

WORD = 4


def run(context: RankContext) -> None:
    """Event `copy` per size: `value` is the median time of a copy in s."""
    case = context.case
    assert isinstance(case, OwnCase)
    source, target = (_memory(max(case.sizes)) for _ in range(2))
    source[:] = pattern(source.size, "float32", 1)
    mark(context, "start", 0)
    for nbytes in case.sizes:
        context.at(0, f"copy {nbytes} B")
        took = copy_seconds(target[: nbytes // WORD], source[: nbytes // WORD])
        moment = now()
        context.recorder.add("copy", 0, moment, moment, nbytes, took)
    mark(context, "end", 0)
    wrong = differing(target, source)
    context.check("copy", not wrong, f"{wrong} of {target.size} elements differ" if wrong else "the same content")


def _memory(nbytes: int) -> np.ndarray:
    """float32 on large pages where the kernel has them, as transport shm's memory; every page written once."""
    mapped = mmap.mmap(-1, max(nbytes, mmap.PAGESIZE))
    mapped.madvise(mmap.MADV_HUGEPAGE)
    memory = np.frombuffer(mapped, np.float32)[: nbytes // WORD]
    memory[:] = 0
    return memory
