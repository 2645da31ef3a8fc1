"""The finished launches that a claim may use: those of one experiment and size, from one machine and one version of the
code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_choice import latest, of_last_version
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.record.stops import decided_plan
from scaleproof.record.store import Store
from scaleproof.spec.case import AnyCase
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import Suite

PARAMETERS = "parameters.npy"
ASKED_FOR = {"tracing": "none", "handicap": 0.0}
"""Fields of a case with their harmless values: launches with another one are used only where a claim names the field.
"""


class Pool:
    """Launches by evidence. Of several machines or code versions only the one that ran last is used
    (record/versions.py)."""

    def __init__(self, store: Store, suite: Suite, experiment: str, size: str) -> None:
        self.planned = (
            decided_plan(store.results, suite, experiment, size) if size in suite.experiment(experiment).sizes else []
        )
        self._store = store
        self._launches: dict[str, Launch] = {}
        indices: dict[str, set[int]] = {}
        for launch in self.planned:
            indices.setdefault(launch.case.case_id, set()).add(launch.plan_index)
        found = [
            record
            for case_id, wanted in indices.items()
            for record in store.records(case_id)
            if record.plan_index in wanted
        ]
        self.records = of_last_version(found)
        self.left_out = len({record.launch for record in found if record.status == "ok"}) - sum(
            record.status == "ok" for record in self.records
        )

    @property
    def machine(self) -> str | None:
        """The one whose records are used; of an allocation, where one node may make networks of its own beside, the
        allocation's. None without records."""
        return next(iter(self.machines), None)

    @property
    def machines(self) -> list[str]:
        """Those whose records are used, that of cases on fabric `host` first: one, or an allocation and the one of its
        nodes that makes networks."""
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
        """Finished launches of the selected cases, by repetition; the latest where one was made twice."""
        finished = [record for record in self._ok(select) if record.evidence == evidence]
        return [self._launch(record) for record in latest(finished, _repetition)]

    def planned_count(self, select: Mapping[str, Any], evidence: Evidence | None = None) -> int:
        """How many launches of the selected cases the plan has; of one level, where it is named: that at which a case
        finished launches, or could have."""
        levels = {record.case_id: record.evidence for record in self._ok(select)}

        def of_level(launch: PlannedLaunch) -> bool:
            known = levels.get(launch.case.case_id)
            return known == evidence if known else (launch.case.plugin("fabric").predicted) == (evidence == "simulated")

        return sum(chosen(launch.case, select) and (evidence is None or of_level(launch)) for launch in self.planned)

    def unfinished(self, select: Mapping[str, Any]) -> list[Record]:
        """Launches of the selected cases that failed or could not run here."""
        return [record for record in self.records if record.status != "ok" and chosen(record.case, select)]

    def _ok(self, select: Mapping[str, Any]) -> list[Record]:
        return [record for record in self.records if record.status == "ok" and chosen(record.case, select)]

    def _launch(self, record: Record) -> Launch:
        if record.launch not in self._launches:
            samples = self._store.frame(record)
            self._launches[record.launch] = Launch(record, samples, partial(self._parameters, record))
        return self._launches[record.launch]

    def _parameters(self, record: Record) -> np.ndarray | None:
        path = self._store.folder(record) / PARAMETERS
        if PARAMETERS not in record.artifacts or not path.exists():
            return None
        values: np.ndarray = np.load(path, allow_pickle=False)
        return values


def matches(case: AnyCase, select: Mapping[str, Any]) -> bool:
    """Whether a case has all these fields with these values; a list means any of its values."""
    return all(_equal(case.value(name, _ABSENT), wanted) for name, wanted in select.items())


def chosen(case: AnyCase, select: Mapping[str, Any]) -> bool:
    """Whether a claim that selects this may use the case: traced and slowed launches only where it names the field."""
    harmless = all(name in select or case.value(name, value) == value for name, value in ASKED_FOR.items())
    return harmless and matches(case, select)


def _repetition(record: Record) -> tuple[int, str]:
    return record.plan_index, record.case_id


_ABSENT = object()


def _equal(found: object, wanted: object) -> bool:
    return found in wanted if isinstance(wanted, list) else found == wanted
