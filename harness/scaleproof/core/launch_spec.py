"""launch.json: the specification of one launch, written by the supervisor and read by every process of the launch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import write_json
from scaleproof.spec.case import AnyCase, parse_case

FILE = "launch.json"
ENVIRONMENT = "SCALEPROOF_LAUNCH"
"""Environment variable of every process of a launch: the launch's id, by which leftovers are found."""
STALL_S = 30.0
"""A launch has stalled when no rank moves, computes or reads for so long; default of an experiment's `stall_s`. Longer
than any single call into a library, which does not report progress: 30 s at 1 Gb/s are 3.7 GB, seven times the largest
gradient of the suites."""

PREFLIGHT = "preflight"
"""The size of the launches of a preflight, which belong to no experiment."""


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One launch: `case` is the case's plain mapping, `address` the IP address that ranks bind, `deadline_s` counts
    from the start."""

    launch: str
    case: dict[str, Any]
    case_id: str
    size: str
    plan_index: int
    seed: int
    token: str
    address: str
    deadline_s: float
    stall_s: float = STALL_S
    programs: str = ""
    """Folder of the suite's own programs."""
    nodes: int = 0
    """Number of nodes of an allocation that the ranks run on; 0: this machine, or nodes that the fabric makes."""
    interface: str = ""
    """The interface of those nodes that is used for the case's interface."""
    campaign: int = 0
    campaign_id: str = ""
    replaces: str = ""
    """See Record."""
    jitter: str = ""
    """The law, with its numbers, of `compute.jitter`."""
    byte_s: float = 0.0
    """What a byte of a rank's own arithmetic takes beside replayed compute, s; 0: nothing but its own time."""

    @property
    def parsed_case(self) -> AnyCase:
        """The case as it was planned."""
        return parse_case(self.case)

    def case_of_ranks(self) -> AnyCase:
        """The case for its ranks: on an allocation with the number of nodes and their interface, which are not part of
        the case's identity."""
        case = parse_case(self.case)
        return case.model_copy(update={"nodes": self.nodes, "interface": self.interface}) if self.nodes else case

    def write(self, folder: Path) -> None:
        """Write launch.json into the launch's folder; who looks there meanwhile sees none, not half of one."""
        write_json(folder / FILE, asdict(self))


def read_launch_spec(folder: Path) -> LaunchSpec:
    """The launch spec of a launch's folder."""
    return LaunchSpec(**json.loads((folder / FILE).read_text()))
