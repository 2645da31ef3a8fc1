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
    """One launch to make: repetition `plan_index` of a case, with its seed and its place in the order."""

    case: AnyCase
    plan_index: int
    seed: int
    order: int
    programs: str = ""
    """Folder of the suite's own programs."""


def plan(
    suite: Suite, experiment_name: str, size: str, repetitions: Mapping[str, int] | None = None
) -> list[PlannedLaunch]:
    """Block k holds repetition k of every case, shuffled. The seed depends on the repetition alone: arms are paired on
    equal seeds.

    `repetitions`: how often each case id is launched where that was decided while running (a size with `stop`); else
    every case as often as the size says.
    """
    chosen = suite.experiment(experiment_name).size(size)
    shuffler = random.Random(order_seed(suite.name, experiment_name, size))
    programs = str(programs_folder(suite.folder).absolute())
    launches: list[PlannedLaunch] = []
    counts = {
        id(case): (repetitions or {}).get(case.case_id, chosen.launches) for case in chosen.cases
    }  # an id is a digest, slow for every launch
    for index in range(max(counts.values(), default=0)):
        block = list(chosen.cases)
        shuffler.shuffle(block)
        seed, first = _number(f"launch/{suite.name}/{experiment_name}/{index}"), index * len(block)
        launches += [
            PlannedLaunch(case, index, seed, first + position, programs)
            for position, case in enumerate(block)
            if index < counts[id(case)]
        ]
    return launches


def order_seed(suite: str, experiment: str, size: str) -> int:
    """The seed that shuffles the blocks."""
    return _number(f"order/{suite}/{experiment}/{size}")


def _number(text: str) -> int:
    """31 bits, as every library's seed takes them."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1
