"""Preflight of an experiment: checks that are made once before its launches, and those that concern each case."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from scaleproof.core.node_schema import Sniff
from scaleproof.core.record_schema import PreflightCheck, Warning
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes, has_room, placement_for
from scaleproof.launch.preflight import machine_preflight as machine
from scaleproof.launch.preflight.rank_preflight import Group, RankAnswers, answers_of, groups, judge
from scaleproof.launch.preflight.slow_nodes import check
from scaleproof.launch.preflight.sniff_test import sniff_of
from scaleproof.spec.case import AnyCase

VALID_S = 600.0
"""Seconds for which the answers of one group of ranks, if no check failed, are used again for the next experiment of
the same process."""


class _StoredAnswers(NamedTuple):
    """`at`: monotonic clock in s."""

    at: float
    answers: RankAnswers


_stored: dict[tuple[Group, tuple[str, ...]], _StoredAnswers] = {}
"""By group of ranks and names of the nodes."""


@dataclass(slots=True)
class Preflight:
    """The preflight of one experiment. `staging`: where the ranks of a preflight have their folder."""

    results: Path
    staging: Path
    allocated: AllocatedNodes | None = None
    note: Callable[[str], None] = lambda line: None
    """Called with the result of the sniff test of the nodes."""
    timed: bool = True
    """Whether nothing else runs beside its launches."""
    idle: dict[str, float] = field(default_factory=dict)
    """Bytes per second that each interface sent before the first launch."""
    sniff: Sniff | None = None
    """The sniff test of the nodes; None before it is made."""
    _nodes: PreflightCheck | None = None
    _cases: list[AnyCase] = field(default_factory=list)
    _of_experiment: list[PreflightCheck] = field(default_factory=list)
    _of_groups: dict[Group, RankAnswers | PreflightCheck] = field(default_factory=dict)

    def expect(self, cases: Sequence[AnyCase]) -> None:
        """Set the cases of the launches to come, one per launch."""
        self._cases, self._of_experiment = list(cases), []

    def lose(self, allocated: AllocatedNodes) -> None:
        """After the loss of a node: the remaining nodes, `allocated`, are checked again."""
        self.allocated, self._nodes, self._of_groups = allocated, None, {}

    def of(self, case: AnyCase) -> list[PreflightCheck]:
        """All checks that concern a launch of this case; the first call makes those of the experiment."""
        if not self._of_experiment:
            quiet, self.idle = machine.idle_traffic()
            shares = [] if self.timed else [machine.shared()]
            self._of_experiment = [machine.disk(self.results, self._cases), quiet, *shares]
        expected = [other for other in self._cases if has_room(other, self.allocated)]
        answers = self._answers(groups([*expected, case])[case.launcher, case.fabric, case.interface])
        own = self._machine(case)
        if isinstance(answers, PreflightCheck):
            return [*self._of_experiment, *own, answers]
        limits = [answer["limits"] for answer in answers.values()]
        own += [
            machine.locked_memory(case, [limit["memlock"] for limit in limits], placement_for(case, self.allocated)),
            machine.open_files(case, [limit["files"] for limit in limits]),
        ]
        return [*self._of_experiment, *own, *self._sniff_nodes(case), *judge(answers)]

    def _machine(self, case: AnyCase) -> list[PreflightCheck]:
        """Memory and cores, of this machine or of the nodes that the case runs on."""
        placement = placement_for(case, self.allocated)
        return [machine.memory(case, placement), machine.cores(case, placement)]

    def _sniff_nodes(self, case: AnyCase) -> list[PreflightCheck]:
        """The sniff test of all nodes, made once; no check where the case does not run on them."""
        if self.allocated is None or placement_for(case, self.allocated) is None:
            return []
        if self._nodes is None:
            result = sniff_of(self.allocated, self.results, self.staging)
            if isinstance(result, PreflightCheck):
                self._nodes, self.sniff = result, None
            else:
                self._nodes, self.sniff = check(result), result
            self.note(f"nodes: {self._nodes.message}" + (f"; {self._nodes.advice}" if self._nodes.advice else ""))
        return [self._nodes]

    def _answers(self, group: Group) -> RankAnswers | PreflightCheck:
        if group not in self._of_groups:
            stored = _stored.get((group, self._node_names()))
            is_valid = stored is not None and time.monotonic() - stored.at < VALID_S
            self._of_groups[group] = stored.answers if stored and is_valid else self._request(group)
        return self._of_groups[group]

    def _request(self, group: Group) -> RankAnswers | PreflightCheck:
        answers = answers_of(group, self.staging, self.allocated)
        if not isinstance(answers, PreflightCheck) and failed(judge(answers)) is None:
            _stored[group, self._node_names()] = _StoredAnswers(time.monotonic(), answers)
        return answers

    def _node_names(self) -> tuple[str, ...]:
        """Names of the nodes; empty: this machine."""
        return tuple(node.name for node in self.allocated.nodes) if self.allocated else ()


def failed(checks: Sequence[PreflightCheck]) -> PreflightCheck | None:
    """The first check that failed: then nothing is measured."""
    return next((check for check in checks if check.passed is False), None)


def warnings(checks: Sequence[PreflightCheck]) -> list[Warning]:
    """A warning for each check that passed or could not be made, and has advice."""
    return [
        Warning(code=check.code, message=check.message, advice=check.advice)
        for check in checks
        if check.passed is not False and check.advice
    ]
