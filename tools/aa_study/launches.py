"""Plans and runs the launches: the pool in blocks until its time is spent, then real slowdowns of the resolution."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scaleproof.core.record_schema import Record
from scaleproof.launch.plan_outcome import PlanOutcome
from scaleproof.launch.progress import progress_on_terminal
from scaleproof.launch.sequential_stopping import finished_launches
from scaleproof.launch.supervisor import More, run_plan
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch, plan
from tools.aa_study.analysis import LAUNCHES, SEED
from tools.aa_study.kinds import ARMS, EXPERIMENT, SIZE, Kind, kinds, suite

DEADLINE_S = 120.0
POOL_SHARE = 0.85
"""Of the time of the study, what the pool may take; the rest is for launches with a real slowdown."""
CONFIRMED = 2 * LAUNCHES
"""Launches an arm with a real slowdown: two comparisons."""
CONFIRMING = ("slowed", "plain")
BLOCKS = 120
"""Of two launches of each case: 240 launches of a kind."""
MINUTES = 120.0
"""Of the whole study."""


class Pool:
    """The blocks of identical arms."""

    def __init__(self, results: Path, blocks: int, minutes: float) -> None:
        self.results, self.seconds = results, POOL_SHARE * minutes * 60
        study = suite()
        self.kinds = kinds(study)
        self.cases = study.experiment(EXPERIMENT).size(SIZE).cases
        self.blocks: list[list[PlannedLaunch]] = [[] for _ in range(blocks)]
        for launch in plan(study, EXPERIMENT, SIZE, {case.case_id: blocks for case in self.cases}):
            self.blocks[launch.plan_index].append(launch)
        self._begun = 1

    def run(self) -> PlanOutcome:
        """Block after block, until all are there or their time is spent. Finished launches are not run again."""
        return _run(self.blocks[0], self.results, "identical arms", self._more)

    def _more(self, store: Store) -> list[PlannedLaunch]:
        self._begun += 1
        spent = sum(record.wall_s for case in self.cases for record in store.records(case.case_id))
        return self.blocks[self._begun - 1] if self._begun <= len(self.blocks) and spent < self.seconds else []

    def values(self, kind: Kind, store: Store) -> dict[str, dict[int, float]]:
        """Value by arm and block."""
        return {arm: _values(kind, kind.case_of(arm).case_id, len(self.blocks), store) for arm in ARMS}

    def records(self, store: Store) -> list[Record]:
        """All finished launches of the pool."""
        return [record for case in self.cases for record in finished_launches(case.case_id, len(self.blocks), store)]

    def calls(self, store: Store) -> dict[int, int]:
        """Which call of `run` made each block."""
        return calls_of(self.records(store))


def calls_of(records: Sequence[Record]) -> dict[int, int]:
    """Which call made each block, counted from 0 in the order of time."""
    order = dict[str, int]()
    for record in sorted(records, key=lambda record: record.started_at):
        order.setdefault(record.campaign_id, len(order))
    return {
        record.plan_index: order[record.campaign_id] for record in sorted(records, key=lambda each: each.plan_index)
    }


def _values(kind: Kind, case_id: str, repetitions: int, store: Store) -> dict[int, float]:
    return {
        record.plan_index: float(f"{value:.6g}")
        for record in finished_launches(case_id, repetitions, store)
        if (value := kind.value(record, store)) is not None
    }


def confirming(kind: Kind, handicap: float) -> dict[str, PlannedLaunch]:
    """The first launch of each arm with and without a real slowdown."""
    cases = (
        kind.case.changed({"arm": f"{kind.name}.{arm}", "handicap": handicap if arm == CONFIRMING[0] else 0.0})
        for arm in CONFIRMING
    )
    return {arm: PlannedLaunch(case, 0, SEED, 0) for arm, case in zip(CONFIRMING, cases, strict=True)}


def confirm(results: Path, handicaps: Mapping[Kind, float]) -> PlanOutcome:
    """Run the launches with a real slowdown, those of all kinds interleaved in blocks."""
    shuffler, launches = random.Random(SEED), list[PlannedLaunch]()
    for index in range(CONFIRMED):
        block = [launch for kind, share in handicaps.items() for launch in confirming(kind, share).values()]
        shuffler.shuffle(block)
        launches += [
            replace(launch, plan_index=index, seed=SEED + index, order=len(launches) + position)
            for position, launch in enumerate(block)
        ]
    return _run(launches, results, "real slowdowns")


def confirmed_values(kind: Kind, handicap: float, store: Store) -> dict[str, dict[int, float]]:
    """Value by arm and block of the launches with a real slowdown."""
    return {
        arm: _values(kind, launch.case.case_id, CONFIRMED, store) for arm, launch in confirming(kind, handicap).items()
    }


def confirmed_records(handicaps: Mapping[Kind, float], store: Store) -> list[Record]:
    """All finished launches with a real slowdown, and those beside them."""
    planned = [launch for kind, share in handicaps.items() for launch in confirming(kind, share).values()]
    return [record for launch in planned for record in finished_launches(launch.case.case_id, CONFIRMED, store)]


def _run(launches: Sequence[PlannedLaunch], results: Path, title: str, more: More | None = None) -> PlanOutcome:
    outcome = run_plan(
        list(launches),
        results,
        size=SIZE,
        deadline_s=DEADLINE_S,
        progress=progress_on_terminal(title),
        more=more,
    )
    print(
        f"{title}: {outcome.skipped} finished before, {outcome.completed} done, {outcome.failed} failed. "
        f"{outcome.stopped}"
    )
    return outcome
