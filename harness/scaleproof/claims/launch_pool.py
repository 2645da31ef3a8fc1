"""The finished launches that a claim may use: those of one experiment and size, from one machine and one version of the
code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_choice import latest, of_last_version
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.record.stops import decided_plan
from scaleproof.record.store import Store
from scaleproof.spec.case import AnyCase
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import Suite
from scaleproof.spec.suite_form import NO_VERDICTS

PARAMETERS = "parameters.npy"
NEUTRAL_VALUES = {"tracing": "none", "handicap": 0.0}
"""Fields of a case with the values that change nothing: launches with another value are used only where a claim names
the field."""

NOT_SET = object()
"""The value of a field that a case does not have."""


class Pool:
    """Launches by evidence. Of several machines or code versions only the one that ran last is used
    (record/versions.py)."""

    def __init__(self, store: Store, suite: Suite, experiment: str, size: str) -> None:
        self.planned = (
            decided_plan(store.results, suite, experiment, size) if size in suite.experiment(experiment).sizes else []
        )
        self.suite, self.size, self._sizes = suite.name, size, suite.experiment(experiment).sizes
        self._store = store
        self._launches: dict[str, Launch] = {}
        indices: dict[str, set[int]] = {}
        for launch in self.planned:
            indices.setdefault(launch.case.case_id, set()).add(launch.plan_index)
        planned_records = [
            record
            for case_id, planned_indices in indices.items()
            for record in store.records(case_id)
            if record.plan_index in planned_indices
        ]
        self.records = of_last_version(planned_records)
        ok_count = len({record.launch for record in planned_records if record.status == "ok"})
        self.left_out = ok_count - sum(record.status == "ok" for record in self.records)

    @property
    def machine(self) -> str | None:
        """The machine whose records are used. Of an allocation and a node of it that also makes emulated networks: the
        allocation. None without records."""
        return next(iter(self.machines), None)

    @property
    def machines(self) -> list[str]:
        """The machines whose records are used, that of cases on fabric `host` first: one machine, or an allocation and
        the one of its nodes that makes emulated networks."""
        return list(
            dict.fromkeys(
                record.machine
                for record in sorted(
                    self.records, key=lambda record: record.case.plugin("fabric").evidence != "measured"
                )
            )
        )

    def evidences(self, select: Mapping[str, Any]) -> list[Evidence]:
        """The levels of evidence at which the selected cases finished launches."""
        return sorted({record.evidence for record in self._ok(select)})

    def launches(self, select: Mapping[str, Any], evidence: Evidence) -> list[Launch]:
        """Finished launches of the selected cases, by repetition and campaign; the latest where one was made twice."""
        finished = [record for record in self._ok(select) if record.evidence == evidence]
        return [self._launch(record) for record in latest(finished, _repetition)]

    def planned_count(self, select: Mapping[str, Any], evidence: Evidence | None = None) -> int:
        """How many launches of the selected cases the plan has. `evidence`: count only cases that have finished
        launches at this level, or, without any, would have."""
        levels = {record.case_id: record.evidence for record in self._ok(select)}

        def of_level(launch: PlannedLaunch) -> bool:
            if level := levels.get(launch.case.case_id):
                return level == evidence
            return launch.case.plugin("fabric").predicted == (evidence == "simulated")

        return sum(chosen(launch.case, select) and (evidence is None or of_level(launch)) for launch in self.planned)

    def only_at_other_sizes(self, select: Mapping[str, Any], fields: Iterable[str]) -> dict[str, list[Any]]:
        """Values of fields that the selected cases of this experiment have at other sizes and none has at this one, by
        field."""
        sizes = [size for name, size in self._sizes.items() if name not in NO_VERDICTS]
        planned = {id(launch.case): launch.case for launch in self.planned}.values()
        here = [case for case in planned if chosen(case, select)]
        cases = [case for size in sizes for case in size.cases if chosen(case, select)]
        found = {}
        for field in fields:
            own = {str(case.value(field)) for case in here}
            elsewhere = {text: value for case in cases if (text := str(value := case.value(field))) not in own}
            if elsewhere:
                found[field] = sorted(elsewhere.values(), key=_in_order)
        return found

    def unfinished(self, select: Mapping[str, Any]) -> list[Record]:
        """Launches of the selected cases that failed or could not run here."""
        return [record for record in self.records if record.status != "ok" and chosen(record.case, select)]

    def _ok(self, select: Mapping[str, Any]) -> list[Record]:
        return [record for record in self.records if record.status == "ok" and chosen(record.case, select)]

    def _launch(self, record: Record) -> Launch:
        if record.launch not in self._launches:
            samples = self._store.frame(record)
            self._launches[record.launch] = Launch(record, samples, partial(self._store.array, record, PARAMETERS))
        return self._launches[record.launch]


def matches(case: AnyCase, select: Mapping[str, Any]) -> bool:
    """Whether a case has all these fields with these values; a list matches any of its values."""
    return all(value_matches(case.value(name, NOT_SET), expected) for name, expected in select.items())


def chosen(case: AnyCase, select: Mapping[str, Any]) -> bool:
    """Whether a claim with this selection uses the case: traced and slowed launches only where it names the field."""
    return matches(case, select) and all(
        name in select or case.value(name, value) == value for name, value in NEUTRAL_VALUES.items()
    )


def _in_order(value: object) -> tuple[bool, float, str]:
    """Numbers first, by their size."""
    number = float(value) if isinstance(value, int | float) else None
    return number is None, number or 0.0, str(value)


def _repetition(record: Record) -> tuple[tuple[int, str], str]:
    return record.block, record.case_id


def value_matches(value: object, expected: object) -> bool:
    """Whether a field's value is the one that a selection names, or in the list that it names."""
    return value in expected if isinstance(expected, list) else value == expected
