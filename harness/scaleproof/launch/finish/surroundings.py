"""What a record says of a launch besides its ranks: the machine around it, and how to run it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scaleproof.core.counters import Counters
from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.record_schema import PreflightCheck, Sniff
from scaleproof.launch.nodes.allocated_nodes import NodePlacement
from scaleproof.launch.nodes.requested_nodes import options
from scaleproof.record.digest import machine_id
from scaleproof.spec.case import AnyCase


@dataclass(slots=True)
class Surroundings:
    """The machine around a launch: `fixed` stays, load and interface counters are read before and after."""

    fixed: dict[str, Any]
    started_at: str
    load: dict[str, Any] = field(default_factory=dict)
    counters_before: Counters = field(default_factory=dict)
    counters_after: Counters = field(default_factory=dict)
    preflight: list[PreflightCheck] = field(default_factory=list)
    """What was found before the experiment, for this launch's case."""
    sniff: Sniff | None = None
    idle: dict[str, float] = field(default_factory=dict)
    """Bytes per second that each interface sent before the experiment, when nothing of ours ran."""
    placement: NodePlacement | None = None
    """Nodes of an allocation; None: this machine, or nodes that the fabric made."""
    machine: str = field(default_factory=machine_id)


def command(case: AnyCase, launch_spec: LaunchSpec, placement: NodePlacement | None = None) -> list[str]:
    """What a person types to run this launch again."""
    chosen = [
        "--size",
        launch_spec.size,
        "--case",
        launch_spec.case_id,
        "--launch",
        str(launch_spec.plan_index),
        "--again",
    ]
    return [
        "scaleproof",
        "run",
        case.suite,
        case.experiment,
        *chosen,
        *(options(placement.allocation) if placement else []),
    ]
