"""Preflight of an experiment: what is looked at once before its launches, and what of it concerns each case."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scaleproof.core.record_schema import PreflightCheck, Sniff, Warning
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes, has_room, placement_for
from scaleproof.launch.preflight import machine_preflight as machine
from scaleproof.launch.preflight.rank_preflight import Group, RankAnswers, answers_of, groups, judge
from scaleproof.launch.preflight.slow_nodes import check
from scaleproof.launch.preflight.sniff_test import sniffed
from scaleproof.spec.case import AnyCase

VALID_S = 600.0
"""Seconds for which the answers of one group of ranks, when nothing was wrong, also stand for the next experiment of
the same process."""
_known: dict[tuple[Group, tuple[str, ...]], tuple[float, RankAnswers]] = {}


@dataclass(slots=True)
class Preflight:
    """One experiment's. `staging`: where the ranks of a preflight may have their folder."""

    results: Path
    staging: Path
    allocated: AllocatedNodes | None = None
    say: Callable[[str], None] = lambda line: None
    """Called with what the sniff test of the nodes measured."""
    idle: dict[str, float] = field(default_factory=dict)
    """Bytes a second that each interface sent before the first launch."""
    sniff: Sniff | None = None
    """The sniff test of the nodes, once it was made."""
    _nodes: PreflightCheck | None = None
    _cases: list[AnyCase] = field(default_factory=list)
    _whole: list[PreflightCheck] = field(default_factory=list)
    _answers_here: dict[Group, RankAnswers | PreflightCheck] = field(default_factory=dict)

    def expect(self, cases: Sequence[AnyCase]) -> None:
        """The launches to come, one case each."""
        self._cases, self._whole = list(cases), []

    def lose(self, allocated: AllocatedNodes) -> None:
        """A node is gone: what is left is looked at anew."""
        self.allocated, self._nodes, self._answers_here = allocated, None, {}

    def of(self, case: AnyCase) -> list[PreflightCheck]:
        """All checks that concern a launch of this case; the first call does what is done once."""
        if not self._whole:
            quiet, self.idle = machine.idle_traffic()
            self._whole = [machine.disk(self.results, self._cases), quiet]
        expected = [other for other in self._cases if has_room(other, self.allocated)]
        answers = self._answers(groups([*expected, case])[case.launcher, case.fabric, case.interface])
        own = self._machine(case)
        if isinstance(answers, PreflightCheck):
            return [*self._whole, *own, answers]
        limits = [found["limits"] for found in answers.values()]
        own += [
            machine.locked_memory(case, [limit["memlock"] for limit in limits]),
            machine.open_files(case, [limit["files"] for limit in limits]),
        ]
        return [*self._whole, *own, *self._look_at_nodes(case), *judge(answers)]

    def _machine(self, case: AnyCase) -> list[PreflightCheck]:
        """Memory and cores, of this machine or of the nodes that the case takes."""
        placement = placement_for(case, self.allocated)
        return [machine.memory(case, placement), machine.cores(case, placement)]

    def _look_at_nodes(self, case: AnyCase) -> list[PreflightCheck]:
        """The sniff test of the nodes of which the case takes some, once."""
        if self.allocated is None or placement_for(case, self.allocated) is None:
            return []
        if self._nodes is None:
            found = sniffed(self.allocated, self.results, self.staging)
            self._nodes, self.sniff = (found, None) if isinstance(found, PreflightCheck) else (check(found), found)
            self.say(f"nodes: {self._nodes.message}" + (f"; {self._nodes.advice}" if self._nodes.advice else ""))
        return [self._nodes]

    def _answers(self, group: Group) -> RankAnswers | PreflightCheck:
        if group not in self._answers_here:
            at, answers = _known.get((group, self._node_names()), (-VALID_S, {}))
            self._answers_here[group] = answers if answers and time.monotonic() - at < VALID_S else self._request(group)
        return self._answers_here[group]

    def _request(self, group: Group) -> RankAnswers | PreflightCheck:
        answer = answers_of(group, self.staging, self.allocated)
        if not isinstance(answer, PreflightCheck) and failed(judge(answer)) is None:
            _known[group, self._node_names()] = time.monotonic(), answer
        return answer

    def _node_names(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(node.name for node in self.allocated.nodes) if self.allocated else ()


def failed(checks: Sequence[PreflightCheck]) -> PreflightCheck | None:
    """The first check that forbids to measure."""
    return next((check for check in checks if check.passed is False), None)


def warnings(checks: Sequence[PreflightCheck]) -> list[Warning]:
    """Checks that passed or could not be made, and still have advice."""
    return [
        Warning(code=check.code, message=check.message, advice=check.advice)
        for check in checks
        if check.passed is not False and check.advice
    ]
