"""Sequential stopping by the claims of an experiment: blocks of launches until the number of every claim is known
exactly enough, or its launches have taken the minutes that a claim may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scaleproof.core.record_schema import Record
from scaleproof.launch.sequential_stopping import Sequential, ValueOf, finished_launches
from scaleproof.record.stops import ClaimStop, Decided, Stops
from scaleproof.record.store import Store
from scaleproof.spec.suite import Suite

WORST: tuple[Decided, ...] = ("unfinished", "time spent", "budget spent", "no result", "reached", "fixed number")
"""Of several claims of one case the first of these is the case's."""


@dataclass(frozen=True, slots=True)
class ClaimNumber:
    """The number of a claim: the ratio of two sides' cases, or without `below` the median of one side."""

    claim: str
    above: tuple[str, ...]
    below: tuple[str, ...]
    value_of: ValueOf

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of the cases of both sides."""
        return (*self.above, *self.below)


def looks(minimum: int, budget: int) -> frozenset[int]:
    """Numbers of blocks at which the interval is computed: each about a quarter more than the one before, since the
    interval of a ratio takes seconds and hardly changes from block to block."""
    counts = [minimum]
    while counts[-1] < budget:
        counts.append(counts[-1] + max(1, counts[-1] // 4))
    return frozenset(counts)


class SequentialClaims(Sequential):
    """Goes on with the cases of claims that are undecided."""

    def __init__(
        self, suite: Suite, experiment: str, size: str, numbers: Sequence[ClaimNumber], campaign: int = 0
    ) -> None:
        super().__init__(suite, experiment, size, lambda record, store: None, {}, campaign)
        self.numbers = numbers
        self._looks = looks(self.minimum, self.stop.budget)
        self._claims: dict[str, ClaimStop] = {}
        self._served: dict[str, set[str]] = {}
        """Cases that have values for a claim."""
        self._found: dict[tuple[str, str], float | None] = {}
        """Value of a launch for a claim."""

    def _continuing(self, store: Store) -> set[str]:
        records = {
            case.case_id: finished_launches(
                case.case_id, self._repetitions[case.case_id], store, self.allocated, self.start
            )
            for case in self.cases
        }
        self._finished = {case_id: len(of_case) for case_id, of_case in records.items()}
        going_on = set[str]()
        for number in self.numbers:
            if self._decided_claim(number.claim) != "unfinished":
                continue
            values = self._values_of(number, records, store)
            self._served[number.claim] = set(values)
            self._claims[number.claim] = self._claim_stop(number, values, records)
            if self._claims[number.claim].decided == "unfinished":
                going_on |= set(values)
        return going_on

    def _decided_claim(self, claim: str) -> Decided:
        return self._claims[claim].decided if claim in self._claims else "unfinished"

    def _claim_stop(
        self, number: ClaimNumber, values: dict[str, dict[int, float]], records: dict[str, list[Record]]
    ) -> ClaimStop:
        blocks = sorted(set.intersection(*map(set, values.values()))) if values else []
        above, below = (
            [values[case_id][block] for block in blocks for case_id in side if case_id in values]
            for side in (number.above, number.below)
        )
        if not above or (number.below and len(above) != len(below)):
            blocks = []
        minutes = sum(record.wall_s for case_id in values for record in records[case_id]) / 60
        late, spent = self.stop.minutes is not None and minutes >= self.stop.minutes, self._next >= self.stop.budget
        share = _share(above, below) if blocks and (len(blocks) in self._looks or late or spent) else None
        decided: Decided = "unfinished"
        if not blocks:
            decided = "no result"
        elif share is not None and share <= self.stop.target:
            decided = "reached"
        elif late:
            decided = "time spent"
        elif spent:
            decided = "budget spent"
        return ClaimStop(
            claim=number.claim,
            campaign=self.campaign,
            launches=len(blocks),
            minutes=minutes,
            decided=decided,
            half_width_share=share,
        )

    def _values_of(
        self, number: ClaimNumber, records: dict[str, list[Record]], store: Store
    ) -> dict[str, dict[int, float]]:
        """Values by block of each case that has any: a claim at one message size selects cases of other sizes too."""
        values = {
            case_id: {
                record.plan_index - self.start: value
                for record in records[case_id]
                if (value := self._value_for(number, record, store)) is not None
            }
            for case_id in number.cases
        }
        return {case_id: of_case for case_id, of_case in values.items() if of_case}

    def _value_for(self, number: ClaimNumber, record: Record, store: Store) -> float | None:
        key = (number.claim, record.launch)
        if key not in self._found:
            self._found[key] = number.value_of(record, store)
        return self._found[key]

    def _half_width(self, case_id: str) -> float | None:
        return None

    def _stops(self) -> Stops:
        stops = super()._stops()
        cases = [
            case.model_copy(update={"launches": self._finished[case.case_id], "decided": self._of_case(case.case_id)})
            for case in stops.cases
        ]
        return stops.model_copy(update={"cases": tuple(cases), "claims": tuple(self._claims.values())})

    def _of_case(self, case_id: str) -> Decided:
        """What ended the launches of a case; a case of no claim had a fixed number."""
        outcomes = {self._decided_claim(number.claim) for number in self.numbers if self._serves(number, case_id)}
        return next((decided for decided in WORST if decided in outcomes), "fixed number")

    def _serves(self, number: ClaimNumber, case_id: str) -> bool:
        if self._decided_claim(number.claim) == "no result":
            return case_id in number.cases
        return case_id in self._served.get(number.claim, ())


def _share(above: Sequence[float], below: Sequence[float]) -> float | None:
    from scaleproof.stats.stopping_rule import median_share, ratio_share  # SciPy takes half a second

    return ratio_share(above, below) if below else median_share(above)
