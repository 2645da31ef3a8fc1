"""launch.json: the specification of one launch, written by the supervisor and read by every process of the launch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scaleproof.spec.case import AnyCase, parse_case

FILE = "launch.json"
ENVIRONMENT = "SCALEPROOF_LAUNCH"
"""In the environment of every process of a launch: its id, by which leftovers are found."""
STALL_S = 30.0
"""No rank moves, computes or reads for so long: `stalled`, where the experiment gives no `stall_s`. Longer than any one
call into a library, which tells nothing of its progress: 30 s at 1 Gb/s are 3.7 GB, seven times the largest gradient of
the suites."""

PREFLIGHT = "preflight"
"""The size of what is no launch of an experiment but a look at the ranks before it."""


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
    """Of an allocation, over which the ranks stand as over a fabric's; 0: on this machine, or on nodes that the fabric
    makes."""
    interface: str = ""
    """What the case's interface means on those nodes."""

    @property
    def parsed_case(self) -> AnyCase:
        """The case as it was planned."""
        return parse_case(self.case)

    def case_of_ranks(self) -> AnyCase:
        """The case as its ranks see it: on an allocation it has nodes and their interface, which are no part of its
        identity."""
        case = parse_case(self.case)
        return case.model_copy(update={"nodes": self.nodes, "interface": self.interface}) if self.nodes else case

    def write(self, folder: Path) -> None:
        """Into the launch's folder."""
        (folder / FILE).write_text(json.dumps(asdict(self)))


def read_launch_spec(folder: Path) -> LaunchSpec:
    """From the launch's folder."""
    return LaunchSpec(**json.loads((folder / FILE).read_text()))
