"""How long a schedule takes an untrained scheduler, for several numbers of channels. What a network has learned does
not change how long it computes."""

from __future__ import annotations

import numpy as np
import torch
from suite_programs.scheduling import schedule_work, scheduler_of, setting_of

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.spec.case import OwnCase
from scaleproof.spec.errors import SpecError

PRELOAD = ("torch", "psutil")
EACH = 10
"""Schedules that are timed together."""


def channels_of(case: OwnCase) -> list[int]:
    """Numbers of channels, as `5-10-15`."""
    text = str(case.options["channels"])
    try:
        return [int(part) for part in text.split("-")]
    except ValueError:
        raise SpecError(f"options.channels: {text!r} is no list of numbers such as 5-10-15") from None


def run(context: RankContext) -> None:
    """Event `decide_M`: the time of a schedule of M channels; numbers of channels in a new random order in each
    iteration."""
    case = context.case
    assert isinstance(case, OwnCase)
    torch.set_num_threads(case.threads_per_rank)
    torch.manual_seed(context.seed)
    random = np.random.default_rng(context.seed)
    settings = {channels: setting_of(case, channels) for channels in channels_of(case)}
    asked = {m: scheduler_of(case, each, each.factors(context.seed)) for m, each in settings.items()}
    curious = np.zeros(1)
    mark(context, "start", 0)
    for iteration in timed_iterations(context, case.warmup, case.iterations):
        for channels in random.permutation(list(asked)).tolist():
            scheduler, shape = asked[channels], (EACH, 1, settings[channels].plants)
            x, seen = random.standard_normal(shape), random.random((*shape, channels)) < settings[channels].good
            context.at(iteration, f"decide_{channels}")
            start = now()
            for number in range(EACH):
                scheduler.choose(scheduler.network, x[number], seen[number], curious, random)
            context.recorder.add(f"decide_{channels}", iteration, start, start + (now() - start) // EACH)
    mark(context, "end", case.warmup + case.iterations - 1)
    context.facts["schedules"] = {str(m): schedule_work(each, settings[m]) for m, each in asked.items()}
