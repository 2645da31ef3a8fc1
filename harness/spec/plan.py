"""From a suite, an experiment and a size to the launches, in a random interleaved order that a resumed run repeats."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.spec.case import AnyCase
from harness.spec.programs import programs_folder

if TYPE_CHECKING:
    from harness.spec.suite import Suite


@dataclass(frozen=True)
class PlannedLaunch:
    """One launch to make: repetition `plan_index` of a case, with its seed and its place in the order."""

    case: AnyCase
    plan_index: int
    seed: int
    order: int
    programs: str = ""
    """Folder of the suite's own programs."""


def plan(suite: Suite, experiment_name: str, size: str) -> list[PlannedLaunch]:
    """Block k holds repetition k of every case, shuffled. The seed depends on the repetition alone: arms are paired on equal seeds."""
    chosen = suite.experiment(experiment_name).size(size)
    shuffler = random.Random(order_seed(suite.name, experiment_name, size))
    programs = str(programs_folder(suite.folder).absolute())
    launches: list[PlannedLaunch] = []
    for index in range(chosen.launches):
        block = list(chosen.cases)
        shuffler.shuffle(block)
        seed = _number(f"launch/{suite.name}/{experiment_name}/{index}")
        launches += [PlannedLaunch(case, index, seed, len(launches) + place, programs) for place, case in enumerate(block)]
    return launches


def order_seed(suite: str, experiment: str, size: str) -> int:
    """The seed that shuffles the blocks."""
    return _number(f"order/{suite}/{experiment}/{size}")


def _number(text: str) -> int:
    """31 bits, as every library's seed takes them."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1
