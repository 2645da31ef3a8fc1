"""What Spark says in its event log about each job: bytes that were shuffled, and tasks that were lost."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

GROUP = "spark.jobGroup.id"
ENVIRONMENT = '{"Event":"SparkListenerEnvironmentUpdate"'
"""How a line about the machine's paths and settings begins."""


@dataclass(slots=True)
class Shuffled:
    """Of all tasks of a job's stages. `written`: bytes that finished maps wrote; `local`, `remote`: bytes that reducers
    read on their own node and from others; `lost`: tasks that failed."""

    written: int = 0
    local: int = 0
    remote: int = 0
    tasks: int = 0
    lost: int = 0


def shuffled(log: Path) -> dict[str, Shuffled]:
    """By job group. ValueError with file and line for what is no event."""
    found: dict[str, Shuffled] = {}
    groups: dict[int, str] = {}
    for number, line in enumerate(log.read_text().splitlines(), 1):
        try:
            event = json.loads(line)
            if event["Event"] == "SparkListenerJobStart":
                group = event["Properties"].get(GROUP, "")
                groups |= dict.fromkeys(event["Stage IDs"], group)
            elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in groups:
                _add(found.setdefault(groups[event["Stage ID"]], Shuffled()), event)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{log.name}:{number}: no event of Spark ({type(error).__name__}: {error})") from None
    return found


def keep(log: Path, target: Path) -> None:
    """Writes a log, compressed and without what it says about the machine."""
    with log.open() as lines, gzip.open(target, "wt") as kept:
        kept.writelines(line for line in lines if not line.startswith(ENVIRONMENT))


def _add(to: Shuffled, event: dict) -> None:
    to.tasks += 1
    if event["Task End Reason"]["Reason"] != "Success":
        to.lost += 1
        return
    of = event["Task Metrics"]
    to.written += of["Shuffle Write Metrics"]["Shuffle Bytes Written"]
    to.local += of["Shuffle Read Metrics"]["Local Bytes Read"]
    to.remote += of["Shuffle Read Metrics"]["Remote Bytes Read"]
