"""Ranks that "train" at a fixed pace, so that the true rate is known: no compute, each step ends at a scheduled time.

Options: `slept: 1`; `steps`; `samples_R` and `pace_ms_R`: samples and duration per step of rank R (0 and 1). Equal
paces stand for synchronous training, whatever the samples; unequal paces stand for ranks that do not wait for each
other.
"""

from __future__ import annotations

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, sleep_for_compute

LEAD_NS = 20_000_000
"""Time between the agreement on a start and the start."""
MS = 1_000_000


def run(context: RankContext) -> None:
    """Every rank records `step` events, whose `value` is the samples of the step. The first step begins at the
    scheduled time, however late the rank wakes up."""
    options, rank = context.case.options, context.rank
    if rank == 0:
        context.rendezvous.publish("start", now() + LEAD_NS)
    origin = context.rendezvous.get("start")
    pace, samples = float(options[f"pace_ms_{rank}"]) * MS, float(options[f"samples_{rank}"])
    context.recorder.add("start", 0, origin, origin)
    started = origin
    for step in range(int(options["steps"])):
        context.at(step, "step")
        _until(context, origin + round((step + 1) * pace))
        ended = now()
        context.recorder.add("step", step, started, ended, value=samples)
        started = ended
    mark(context, "end", int(options["steps"]) - 1)


def _until(context: RankContext, moment_ns: int) -> None:
    while (remaining := moment_ns - now()) > 0:
        sleep_for_compute(context, remaining / 1e9)
