"""launch.json: what the supervisor orders and every process of the launch reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FILE = "launch.json"
ENVIRONMENT = "SCALEPROOF_LAUNCH"
"""In the environment of every process of a launch: its id, by which leftovers are found."""


@dataclass(frozen=True, slots=True)
class Orders:
    """One launch: `case` is the case's plain mapping, `address` the IP address that ranks bind, `deadline_s` counts from the start."""

    launch: str
    case: dict[str, Any]
    case_id: str
    size: str
    plan_index: int
    seed: int
    token: str
    address: str
    deadline_s: float
    stall_s: float = 30.0
    programs: str = ""
    """Folder of the suite's own programs."""

    def write(self, folder: Path) -> None:
        """Into the launch's folder."""
        (folder / FILE).write_text(json.dumps(asdict(self)))


def read_orders(folder: Path) -> Orders:
    """From the launch's folder."""
    return Orders(**json.loads((folder / FILE).read_text()))
