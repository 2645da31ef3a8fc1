"""Which launch and which iteration of it a figure of passes draws, and the passes that it recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scaleproof.claims.sample_columns import columns, offsets_of
from scaleproof.report.data import Run
from scaleproof.report.figures.kinds import Iteration, RecordedPass
from scaleproof.report.levels_compared import LEVELS, level

MS = 1e6
"""Nanoseconds."""


def drawn_launch(runs: Sequence[Run]) -> tuple[Run, Iteration] | None:
    """The first of these launches, in the order of the plan, that recorded passes of micro-batches; measured ones come
    before emulated and simulated ones. None if no launch has any."""
    for run in sorted(runs, key=lambda run: LEVELS.index(level(run))):
        iteration = last_iteration(run)
        if iteration is not None:
            return run, iteration
    return None


def last_iteration(run: Run) -> Iteration | None:
    """The passes of the last iteration after the warm-up, on rank 0's clock; None where a launch recorded none."""
    assert run.record is not None, "a launch without a record has no passes"
    rows = columns(run.record, run.samples)
    chosen = rows.timed("forward", "backward")
    chosen = chosen[np.isfinite(rows.value[chosen])]
    if not len(chosen):
        return None
    step = int(rows.step[chosen].max())
    chosen = chosen[rows.step[chosen] == step]
    offsets = offsets_of(run.record, rows.rank[chosen])
    starts, ends = rows.start[chosen] + offsets, rows.end[chosen] + offsets
    begun, forward = starts.min(), set(rows.of("forward").tolist())
    found = [
        RecordedPass(
            int(rows.rank[row]),
            int(rows.value[row]),
            "forward" if row in forward else "backward",
            float(start - begun) / MS,
            float(end - begun) / MS,
        )
        for row, start, end in zip(chosen.tolist(), starts, ends, strict=True)
    ]
    ordered = sorted(found, key=lambda each: (each.rank, each.start_ms))
    return Iteration(run.launch, level(run), step, tuple(ordered))
