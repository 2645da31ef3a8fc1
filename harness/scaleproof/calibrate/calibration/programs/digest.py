"""SHA-256 of a buffer that fits the core's cache: work whose time depends on little but the core, for showing what a
comparison finds."""

from __future__ import annotations

import hashlib

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.programs.handicap import finished
from scaleproof.spec.case import OwnCase

OF_NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""SHA-256 of no bytes (FIPS 180-4)."""


def run(context: RankContext) -> None:
    """Hash `options.kib` KiB over and over; an event `digest` each."""
    case = context.case
    assert isinstance(case, OwnCase)
    data = bytes(int(case.options["kib"]) << 10)
    first = hashlib.sha256(data).digest()
    for iteration in timed_iterations(context, case.warmup, case.iterations):
        if iteration == case.warmup:
            mark(context, "start", iteration)
        context.at(iteration, "digest")
        start = now()
        last = hashlib.sha256(data).digest()
        context.recorder.add("digest", iteration, start, finished(start, case.handicap), len(data))
    mark(context, "end", case.warmup + case.iterations - 1)
    context.check(
        "digest",
        last == first and hashlib.sha256().hexdigest() == OF_NOTHING,
        "the same digest at the start and the end",
    )
