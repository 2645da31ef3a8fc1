"""A store that holds what a made-up machine measured, for rules that decide from records alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

from scaleproof.record.digest import code_digest, machine_id
from scaleproof.record.stops import Stops, read_stops
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import Suite


class Rule(Protocol):
    """Which launches follow, from those in a store."""

    def more(self, store: Any) -> list[PlannedLaunch]: ...


def made_up_value(record: Any, store: Any) -> float | None:
    """In place of a metric."""
    value: float | None = record.value
    return value


class MadeUpMachine:
    """Launches of experiment `e` with values by arm and block, `levels`; each takes `wall_s`. An arm without values has
    launches of status `without_value`."""

    without_value = "failed"

    def __init__(
        self, results: Path, suite: Suite, size: str, levels: dict[str, list[float]], wall_s: float = 1.0
    ) -> None:
        self.results, self.suite, self.size, self.levels, self.wall_s = results, suite, size, levels, wall_s
        self.found = dict[tuple[str, int], Any]()
        self.arms = {case.case_id: case.arm for case in suite.experiment("e").size(size).cases}
        self.ids = {arm: case_id for case_id, arm in self.arms.items()}
        self.made: list[tuple[str, int]] = []

    def records(self, case_id: str) -> list[Any]:
        """As a store returns them."""
        return [record for (own, _), record in self.found.items() if own == case_id]

    def launch(self, case_id: str, index: int) -> None:
        """Finish a launch."""
        values = self.levels[self.arms[case_id]]
        self.found[case_id, index] = SimpleNamespace(
            case_id=case_id,
            case=SimpleNamespace(fabric="host"),
            plan_index=index,
            status="ok" if values else self.without_value,
            code=SimpleNamespace(digest=code_digest(), files={}),
            machine=machine_id(),
            launch=f"{case_id}{index}",
            value=values[index % len(values)] if values else None,
            wall_s=self.wall_s,
        )
        self.made.append((self.arms[case_id], index))

    def follow(self, rule: Rule, blocks: int) -> Stops:
        """Six blocks, then those that the rule asks for, at most `blocks`, as the supervisor does; the stored
        decisions."""
        for case_id in self.arms:
            for index in range(6):
                self._launch_once(case_id, index)
        while blocks and (block := rule.more(self)):
            blocks -= 1
            for planned in block:
                self._launch_once(planned.case.case_id, planned.plan_index)
        stops = read_stops(self.results, "x", "e", self.size)
        assert stops is not None
        return stops

    def _launch_once(self, case_id: str, index: int) -> None:
        if (case_id, index) not in self.found:
            self.launch(case_id, index)
