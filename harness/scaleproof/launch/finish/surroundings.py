"""The parts of a record that are not about ranks: the machine around a launch, its identity, and how to run it
again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scaleproof.core.counters import Counters
from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.node_schema import Sniff
from scaleproof.core.record_schema import PreflightCheck
from scaleproof.launch.nodes.allocated_nodes import NodePlacement
from scaleproof.launch.nodes.requested_nodes import options
from scaleproof.record.digest import machine_id
from scaleproof.spec.case import AnyCase
from scaleproof.spec.tuned import tuning_of


@dataclass(slots=True)
class Surroundings:
    """The machine around a launch. `fixed`: facts that do not change during a launch; load and interface counters are
    read before and after it."""

    fixed: dict[str, Any]
    started_at: str
    load: dict[str, Any] = field(default_factory=dict)
    counters_before: Counters = field(default_factory=dict)
    counters_after: Counters = field(default_factory=dict)
    preflight: list[PreflightCheck] = field(default_factory=list)
    """Checks before the experiment that concern this launch's case."""
    sniff: Sniff | None = None
    idle: dict[str, float] = field(default_factory=dict)
    """Bytes per second that each interface sent before the experiment, while no launch ran."""
    placement: NodePlacement | None = None
    """Nodes of an allocation; None: this machine, or nodes that the fabric makes."""
    machine: str = field(default_factory=machine_id)


def launch_fields(case: AnyCase, launch_spec: LaunchSpec, surroundings: Surroundings) -> dict[str, Any]:
    """The fields of a record that say which launch it is of, and where and when it ran."""
    return {
        "launch": launch_spec.launch,
        "case_id": launch_spec.case_id,
        "case": case,
        "size": launch_spec.size,
        "plan_index": launch_spec.plan_index,
        "campaign": launch_spec.campaign,
        "campaign_id": launch_spec.campaign_id,
        "replaces": launch_spec.replaces,
        "seed": launch_spec.seed,
        "machine": surroundings.machine,
        "started_at": surroundings.started_at,
        "command": _command(case, launch_spec, surroundings.placement),
    }


def _command(case: AnyCase, launch_spec: LaunchSpec, placement: NodePlacement | None) -> list[str]:
    """What a person types to run this launch again."""
    if (tuned := tuning_of(case.experiment)) is not None:
        return ["scaleproof", "tune", case.suite, "--experiment", tuned, "--size", launch_spec.size]
    of_launch = ["--size", launch_spec.size, "--case", launch_spec.case_id, "--launch", str(launch_spec.plan_index)]
    of_nodes = options(placement.allocation) if placement else []
    return ["scaleproof", "run", case.suite, case.experiment, *of_launch, "--again", *of_nodes]
