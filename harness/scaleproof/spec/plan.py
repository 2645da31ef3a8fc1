"""From a suite, an experiment and a size to the launches, in a random interleaved order that a resumed run repeats."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scaleproof.spec.case import AnyCase
from scaleproof.spec.programs import programs_folder

if TYPE_CHECKING:
    from scaleproof.spec.suite import Suite


@dataclass(frozen=True)
class PlannedLaunch:
    """One launch to make: repetition `plan_index` of a case, counted over all campaigns, with its seed and its place in
    the order."""

    case: AnyCase
    plan_index: int
    seed: int
    order: int
    programs: str = ""
    """Folder of the suite's own programs."""
    campaign: int = 0
    """The call of `run` that makes it, from 0."""


def plan(
    suite: Suite, experiment_name: str, size: str, repetitions: Mapping[str, int] | None = None
) -> list[PlannedLaunch]:
    """All campaigns of a size, one after the other; `repetitions`: see `campaign_plan`."""
    campaigns = suite.experiment(experiment_name).size(size).campaigns
    return [
        launch
        for campaign in range(campaigns)
        for launch in campaign_plan(suite, experiment_name, size, campaign, repetitions)
    ]


def campaign_plan(
    suite: Suite, experiment_name: str, size: str, campaign: int, repetitions: Mapping[str, int] | None = None
) -> list[PlannedLaunch]:
    """Block k holds repetition k of every case, shuffled. The seed depends on the repetition alone: arms are paired on
    equal seeds. Repetitions are numbered through all campaigns, so each campaign has seeds of its own; predicted cases
    are in campaign 0 alone.

    `repetitions`: how often each case id is launched where that was decided while running (a size with `stop`); else
    every case as often as the size says.
    """
    chosen = suite.experiment(experiment_name).size(size)
    shuffler = random.Random(order_seed(suite.name, experiment_name, size, campaign))
    programs = str(programs_folder(suite.folder).absolute())
    launches: list[PlannedLaunch] = []
    cases = [case for case in chosen.cases if campaign == 0 or not case.plugin("fabric").predicted]
    counts = {
        id(case): (repetitions or {}).get(case.case_id, chosen.launches) for case in cases
    }  # an id is a digest, slow for every launch
    start = campaign * chosen.most_launches
    for index in range(start, start + max(counts.values(), default=0)):
        block = list(cases)
        shuffler.shuffle(block)
        seed, first = _number(f"launch/{suite.name}/{experiment_name}/{index}"), index * len(chosen.cases)
        launches += [
            PlannedLaunch(case, index, seed, first + position, programs, campaign)
            for position, case in enumerate(block)
            if index - start < counts[id(case)]
        ]
    return launches


def order_seed(suite: str, experiment: str, size: str, campaign: int = 0) -> int:
    """The seed that shuffles the blocks of a campaign."""
    return _number(f"order/{suite}/{experiment}/{size}" + (f"/{campaign}" if campaign else ""))


def tuning_seed(suite: str, experiment: str, index: int) -> int:
    """The seed of launch `index` of each grid point: none of those that the experiment itself has."""
    return _number(f"tune/{suite}/{experiment}/{index}")


def _number(text: str) -> int:
    """31 bits, as every library's seed takes them."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1
