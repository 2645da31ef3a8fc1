"""Which cases of a suite's plans a claim's selections have, at any size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scaleproof.claims.launch_pool import NOT_SET, chosen, value_matches
from scaleproof.claims.made_up import planned_evidence
from scaleproof.spec.case import AnyCase
from scaleproof.spec.messages import brief
from scaleproof.spec.registry import nearest
from scaleproof.spec.suite import Suite

MOST_NAMED = 12
"""Values of a field that a message lists."""


class PlannedCases:
    """The cases of each experiment of a suite, at all sizes together."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._cases: dict[str, dict[str, AnyCase]] = {}
        self._chosen: dict[tuple[str, str], frozenset[str]] = {}
        self._values: dict[tuple[str, str], list[Any]] = {}

    def of(self, experiment: str) -> dict[str, AnyCase]:
        """By case id."""
        if experiment not in self._cases:
            sizes = self._suite.experiments[experiment].sizes.values()
            self._cases[experiment] = {case.case_id: case for size in sizes for case in size.cases}
        return self._cases[experiment]

    def chosen(self, experiment: str, select: Mapping[str, Any]) -> frozenset[str]:
        """The ids of those that a claim with this selection uses."""
        key = experiment, repr(select)
        if key not in self._chosen:
            cases = self.of(experiment).values()
            self._chosen[key] = frozenset(case.case_id for case in cases if chosen(case, select))
        return self._chosen[key]

    def absent(self, experiment: str, select: Mapping[str, Any]) -> tuple[str, str] | None:
        """The first field with a value that no case has, and what is wrong with it; None where each is there."""
        for name, expected in select.items():
            known = self._known(experiment, name)
            for value in expected if isinstance(expected, list) else [expected]:
                if not any(value_matches(each, value) for each in known):
                    return name, _absent(experiment, name, value, known)
        return None

    def without(self, experiment: str, names: Iterable[str]) -> tuple[str, str] | None:
        """The first of these fields that no case has, and what is wrong with it; None where each is there."""
        cases = self.of(experiment).values()
        for name in names:
            if all(case.value(name, NOT_SET) is NOT_SET for case in cases):
                known = sorted({f"options.{key}" for case in cases for key in getattr(case, "options", {})})
                return name, f"no case of experiment {experiment!r} has the field {name!r}; {nearest(name, known)}"
        return None

    def beside_others(self, experiment: str, chosen: Iterable[str]) -> bool:
        """Whether other launches may run beside some of these cases, whose clocks then say nothing."""
        cases, of = self.of(experiment), self._suite.experiments[experiment]
        return not all(of.clocks_count(cases[each]) for each in chosen)

    def most_steps(self, experiment: str, select: Mapping[str, Any], along: str) -> int:
        """The most values of the field `along` that one size plans at one level of evidence."""
        counts = [0]
        for size in self._suite.experiments[experiment].sizes.values():
            values: dict[str, set[str]] = {}
            for case in size.cases:
                if chosen(case, select):
                    values.setdefault(planned_evidence(case), set()).add(repr(case.value(along)))
            counts += map(len, values.values())
        return max(counts)

    def _known(self, experiment: str, name: str) -> list[Any]:
        """The values of a field that the cases have."""
        key = experiment, name
        if key not in self._values:
            values = [case.value(name, NOT_SET) for case in self.of(experiment).values()]
            self._values[key] = list({repr(value): value for value in values if value is not NOT_SET}.values())
        return self._values[key]


def _absent(experiment: str, name: str, value: Any, known: list[Any]) -> str:
    texts = [_text(each) for each in known]
    advice = nearest(_text(value), texts) if texts else "none has this field"
    if advice.startswith("known: ") and len(texts) > MOST_NAMED:
        advice = f"known: {', '.join(texts[:MOST_NAMED])} and {len(texts) - MOST_NAMED} more"
    return f"no case of experiment {experiment!r} has {name} {brief(value)} at any size; {advice}"


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return value if isinstance(value, str) else f"{value!r:.40}"
