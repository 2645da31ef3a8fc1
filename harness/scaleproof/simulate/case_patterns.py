"""The schedules of a training case's collective calls."""

from __future__ import annotations

from scaleproof.simulate.collective_schedules import Pattern, grouped, pattern_of
from scaleproof.simulate.program import algorithm_of
from scaleproof.spec.case import TrainCase
from scaleproof.strategies.step_program import Submit


class Patterns:
    """Schedules of a case's collective calls, cached."""

    def __init__(self, case: TrainCase, groups: int) -> None:
        self.ranks, self._algorithm = case.ranks, algorithm_of(case)
        size = case.ranks // groups
        inside = tuple(tuple(range(first, first + size)) for first in range(0, case.ranks, size))
        between = tuple(tuple(range(local_rank, case.ranks, size)) for local_rank in range(size))
        self._members = {"inside": inside, "between": between}
        self._cache: dict[tuple[str, str], Pattern] = {}

    def of(self, item: Submit) -> Pattern:
        """The schedule of a call among its ranks."""
        key = (item.operation, item.scope)
        if key not in self._cache:
            if item.scope == "all":
                self._cache[key] = pattern_of(self._algorithm, item.operation, self.ranks)
            else:
                groups = self._members[item.scope]
                self._cache[key] = grouped(
                    pattern_of(self._algorithm, item.operation, len(groups[0])), groups, self.ranks
                )
        return self._cache[key]
