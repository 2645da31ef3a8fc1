"""How long a schedule takes an untrained scheduler, for several numbers of channels. What a network has learned does
not change how long it computes."""

from __future__ import annotations

import numpy as np
import torch
from suite_programs.networked_plants import Setting
from suite_programs.scheduling import scheduler_of, whole

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
    random, plants = np.random.default_rng(context.seed), whole(case, "plants")
    asked = {}
    for channels in channels_of(case):
        setting = Setting(plants, channels, 1.0, 1.25, 0.9, 0.8, 1.0, 1000.0)
        asked[channels] = scheduler_of(case, setting, setting.factors(context.seed))
    curious = np.zeros(1)
    mark(context, "start", 0)
    for iteration in timed_iterations(context, case.warmup, case.iterations):
        for channels in random.permutation(list(asked)).tolist():
            scheduler = asked[channels]
            x, seen = random.standard_normal((EACH, 1, plants)), random.random((EACH, 1, plants, channels)) < 0.8
            context.at(iteration, f"decide_{channels}")
            start = now()
            for number in range(EACH):
                scheduler.choose(scheduler.network, x[number], seen[number], curious, random)
            context.recorder.add(f"decide_{channels}", iteration, start, start + (now() - start) // EACH)
    mark(context, "end", case.warmup + case.iterations - 1)
    context.facts["work"] = {
        "multiply_adds": {str(m): each.passes * int(each.network.multiply_adds) for m, each in asked.items()}
    }
