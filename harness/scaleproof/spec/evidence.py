"""The level of evidence of a launch, as far as its case or its ranks decide it: what is slept, stood in for or made
longer on request is `emulated`, on whatever network and in whatever suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from scaleproof.spec.faults import faults_of
from scaleproof.spec.launch_kind import replays

if TYPE_CHECKING:
    from scaleproof.spec.case import AnyCase

Evidence = Literal["measured", "emulated", "simulated"]
STATED_WAITS = ("step_delay", "message_delay", "handicap")
"""Fields of a case that make its times longer by waits that are stated, not caused."""
WAITED_FOR = frozenset({"pause", "lose"})
"""Faults that are such waits; a death is one that happens."""


def emulates(case: AnyCase) -> bool:
    """Whether a case asks for compute that is replayed or slept, for something to stand in for a part of the machine
    (options of a suite's own program with the value `emulated`), or for stated waits."""
    waits = any(case.value(name) for name in STATED_WAITS) or faults_of(case.value("faults")).names & WAITED_FOR
    return replays(case) or bool(case.value("stand_ins")) or bool(waits)


def evidence_on(case: AnyCase, network: Evidence) -> Evidence:
    """The evidence of a launch on a network with this evidence. A prediction stays one."""
    return "emulated" if emulates(case) and not case.plugin("fabric").predicted else network


def planned_evidence(case: AnyCase) -> Evidence:
    """The level of evidence that a launch of the case will have."""
    return evidence_on(case, case.plugin("fabric").evidence)


def software_device(facts: Mapping[str, Any]) -> bool:
    """Whether a rank found its verbs device to be made of software: a launch with one is emulated on whatever nodes,
    which no case says beforehand."""
    return bool((facts.get("verbs") or {}).get("software"))
