"""The schedules of a training case's collective calls."""

from __future__ import annotations

from scaleproof.rank_programs.effects import ALL, Collective
from scaleproof.simulate.collective_schedules import Pattern, grouped, pattern_of
from scaleproof.simulate.program import algorithm_of
from scaleproof.spec.case import TrainCase


class Patterns:
    """Schedules of a case's collective calls, cached."""

    def __init__(self, case: TrainCase, groups: int) -> None:
        self.ranks, self._algorithm = case.ranks, algorithm_of(case)
        self._members = groups_of(case.ranks, groups)
        self._cache: dict[tuple[str, str], Pattern] = {}

    def of(self, call: Collective) -> Pattern:
        """The schedule of a call among its ranks."""
        key = (call.operation, call.group)
        if key not in self._cache:
            if call.group == ALL:
                self._cache[key] = pattern_of(self._algorithm, call.operation, self.ranks)
            else:
                groups = self._members[call.group]
                self._cache[key] = grouped(
                    pattern_of(self._algorithm, call.operation, len(groups[0])), groups, self.ranks
                )
        return self._cache[key]


def groups_of(ranks: int, groups: int) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Neighbours in so many groups, and ranks with the same position in these."""
    size = ranks // groups
    inside = tuple(tuple(range(first, first + size)) for first in range(0, ranks, size))
    return {"inside": inside, "between": tuple(tuple(range(first, ranks, size)) for first in range(size))}
