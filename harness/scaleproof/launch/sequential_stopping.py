"""Sequential stopping: blocks of launches until every case's interval is within the target or the budget ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from scaleproof.core.record_schema import Record
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes, machine_of
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.record.stops import CaseStop, Decided, Stops, write_stops
from scaleproof.record.store import Store
from scaleproof.record.used_code import is_current
from scaleproof.spec.experiment import Stop
from scaleproof.spec.plan import PlannedLaunch, campaign_plan

if TYPE_CHECKING:
    from scaleproof.spec.suite import Suite
    from scaleproof.stats.stopping_rule import Stop as State

ValueOf = Callable[[Record, Store], float | None]
"""A launch's value of the metric that decides; passed in, since metrics belong to a package above this one."""


def fixed_number(
    suite: Suite,
    experiment: str,
    size: str,
    store: Store,
    allocated: AllocatedNodes | None = None,
    campaign: int = 0,
) -> Stops:
    """The stops file of a size without `stop`: every case has the same number of launches."""
    chosen = suite.experiment(experiment).size(size)
    start = campaign * chosen.most_launches
    cases = tuple(
        CaseStop(
            case_id=case.case_id,
            arm=case.arm,
            campaign=campaign,
            repetitions=chosen.launches,
            launches=len(finished_launches(case.case_id, chosen.launches, store, allocated, start)),
            decided="fixed number",
            half_width_share=None,
        )
        for case in chosen.cases
    )
    return Stops(
        suite=suite.name,
        experiment=experiment,
        size=size,
        machine=_machine(allocated),
        code=code_digest(),
        minimum=chosen.launches,
        budget=chosen.launches,
        cases=cases,
    )


class Sequential:
    """Plans further blocks of launches from the records alone, so that a resumed run decides the same again. The
    supervisor calls `more` when a block has ended."""

    def __init__(
        self,
        suite: Suite,
        experiment: str,
        size: str,
        value_of: ValueOf,
        companions: Mapping[str, set[str]],
        campaign: int = 0,
    ) -> None:
        chosen = suite.experiment(experiment).size(size)
        assert chosen.stop is not None
        self.stop: Stop = chosen.stop
        self.names, self.campaign = (suite.name, experiment, size), campaign
        self.start = campaign * chosen.most_launches
        """The first repetition of the campaign."""
        self.cases, self.minimum = chosen.cases, chosen.launches
        self.value_of, self.companions = value_of, companions
        self._blocks: dict[int, list[PlannedLaunch]] = {}
        budgets = {case.case_id: self.stop.budget for case in chosen.cases}
        for launch in campaign_plan(suite, experiment, size, campaign, budgets):
            self._blocks.setdefault(launch.plan_index - self.start, []).append(launch)
        self._repetitions = {case.case_id: chosen.launches for case in chosen.cases}
        self._decided: dict[str, Decided] = {}
        self._values: dict[tuple[str, int], tuple[str, float | None]] = {}
        self._seen: dict[str, list[float]] = {}
        """Values of each case's launches so far."""
        self._next = chosen.launches
        self.allocated: AllocatedNodes | None = None
        """Nodes that the run has; None: this machine."""

    def more(self, store: Store) -> list[PlannedLaunch]:
        """The next block: cases whose interval is still too wide and those they are compared with; empty when all
        cases are decided. Writes the decisions so far."""
        continuing = self._continuing(store)
        block = [launch for launch in self._blocks.get(self._next, []) if launch.case.case_id in continuing]
        for launch in block:
            self._repetitions[launch.case.case_id] = self._next + 1
        self._next += 1
        write_stops(store.results, self._stops())
        return block

    def _continuing(self, store: Store) -> set[str]:
        """Decides what can be decided; the cases that need another launch."""
        self._seen = {case.case_id: self._case_values(case.case_id, store) for case in self.cases}
        for case_id, case_values in self._seen.items():
            if case_id not in self._decided:
                self._decide(case_id, case_values)
        undecided = {case_id for case_id in self._seen if case_id not in self._decided}
        return undecided | {
            companion
            for case_id in undecided
            for companion in self.companions.get(case_id, ())
            if self._seen.get(companion)
        }

    def _decide(self, case_id: str, values: Sequence[float]) -> None:
        if not values:
            self._decided[case_id] = "no result"
            return
        state = _state(values, self.stop)
        if state.outcome != "continue":
            self._decided[case_id] = state.outcome
        elif self._next >= self.stop.budget:  # some launches of the budget gave no value
            self._decided[case_id] = "budget spent"

    def _case_values(self, case_id: str, store: Store) -> list[float]:
        """The metric of the case's finished launches that have one."""
        records = finished_launches(case_id, self._repetitions[case_id], store, self.allocated, self.start)
        return [value for record in records if (value := self._value(record, store)) is not None]

    def _value(self, record: Record, store: Store) -> float | None:
        key = (record.case_id, record.plan_index)
        if key not in self._values or self._values[key][0] != record.launch:
            self._values[key] = record.launch, self.value_of(record, store)
        return self._values[key][1]

    def _half_width(self, case_id: str) -> float | None:
        values = self._seen[case_id]
        return _state(values, self.stop).half_width_share if values else None

    def _stops(self) -> Stops:
        suite, experiment, size = self.names
        return Stops(
            suite=suite,
            experiment=experiment,
            size=size,
            machine=_machine(self.allocated),
            code=code_digest(),
            metric=self.stop.metric,
            nbytes=self.stop.nbytes,
            target=self.stop.target,
            minutes=self.stop.minutes,
            minimum=self.minimum,
            budget=self.stop.budget,
            cases=tuple(
                CaseStop(
                    case_id=case.case_id,
                    arm=case.arm,
                    campaign=self.campaign,
                    repetitions=self._repetitions[case.case_id],
                    launches=len(self._seen.get(case.case_id, ())),
                    decided=self._decided.get(case.case_id, "unfinished"),
                    half_width_share=self._half_width(case.case_id),
                )
                for case in self.cases
            ),
        )


def finished_launches(
    case_id: str, repetitions: int, store: Store, allocated: AllocatedNodes | None = None, start: int = 0
) -> list[Record]:
    """Finished launches of repetitions from `start` on, of this code on this machine or these nodes, by repetition; of
    one that ran twice, the later launch."""
    good = [record for record in store.records(case_id) if record.status == "ok"]
    good = [
        record
        for record in good
        if is_current(record.code, record.case.fabric) and record.machine == machine_of(record.case, allocated)
    ]
    latest = {record.plan_index: record for record in good if 0 <= record.plan_index - start < repetitions}
    return [latest[index] for index in sorted(latest)]


def _machine(allocated: AllocatedNodes | None) -> str:
    return allocated.machine if allocated else machine_id()


def _state(values: Sequence[float], stop: Stop) -> State:
    from scaleproof.stats.stopping_rule import state  # SciPy takes half a second, and most sizes have no `stop`

    return state(values, stop.target, stop.budget)
