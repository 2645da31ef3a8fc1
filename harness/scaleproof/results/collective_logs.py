"""Logs of others' tools: nccl-tests (text and JSON) and OSU's benchmarks of collectives, as rows of bytes and time."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaleproof.spec.errors import SpecError

COLLECTIVES = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reducescatter",
    "broadcast": "broadcast",
    "alltoall": "alltoall",
    "sendrecv": "sendrecv",
}
"""Names of nccl-tests' programs, and of the collectives here."""
STARTING = re.compile(r"^#\s*Collective test starting:\s*(\w+?)_perf", re.MULTILINE)
DEVICE = re.compile(r"^#\s+Rank\s+(\d+)\s.*\son\s+(\S+)\s+device", re.MULTILINE)
OSU = re.compile(r"^#\s*OSU MPI[-\w]*\s+(\w+)\s+Latency", re.MULTILINE | re.IGNORECASE)
COLUMNS_OF_A_PLACEMENT = 4
"""time, algbw, busbw, #wrong."""


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """`nbytes`: of the whole array; `busbw` in GB/s as printed, None where a tool prints none."""

    nbytes: int
    seconds: float
    busbw: float | None


@dataclass(frozen=True, slots=True)
class CollectiveLog:
    """Out-of-place calls of one collective. `gpus`, `nodes`: None where the log does not say."""

    tool: str
    collective: str
    gpus: int | None
    nodes: int | None
    calls: tuple[LoggedCall, ...]


def read_log(file: Path, collective: str | None = None) -> CollectiveLog:
    """A log of nccl-tests or of OSU. `collective`: where the log does not name it. Raises SpecError, one line, for a
    file that is neither."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{file}: {getattr(error, 'strerror', None) or 'no text'}") from None
    if text.lstrip().startswith("{"):
        log = _of_json(file, text, collective)
    else:
        log = _of_osu(text) or _of_text(file, text, collective)
    if not log.calls:
        raise SpecError(f"{file}: no line of results, as nccl-tests prints them: 13 columns from the bytes on")
    return log


def _named(file: Path, found: str | None, given: str | None) -> str:
    """The collective of a log."""
    name = given or found
    if name is None:
        raise SpecError(f"{file}: the log does not name its collective; give --collective ({', '.join(COLLECTIVES)})")
    if name not in COLLECTIVES:
        raise SpecError(f"{file}: unknown collective {name!r}; known: {', '.join(COLLECTIVES)}")
    return COLLECTIVES[name]


def _of_text(file: Path, text: str, collective: str | None) -> CollectiveLog:
    started, devices = STARTING.search(text), DEVICE.findall(text)
    calls = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split()
        if len(cells) < 3 + 2 * COLUMNS_OF_A_PLACEMENT or not (cells[0].isdigit() and cells[1].isdigit()):
            continue
        time, _, busbw, _ = cells[-2 * COLUMNS_OF_A_PLACEMENT : -COLUMNS_OF_A_PLACEMENT]
        try:
            calls.append(LoggedCall(int(cells[0]), float(time) / 1e6, float(busbw)))
        except ValueError:
            numbers = f"{time!r} and {busbw!r} are to be numbers"
            raise SpecError(f"{file}:{number}: no result of nccl-tests: {numbers}") from None
    hosts = {host for _, host in devices}
    return CollectiveLog(
        "nccl-tests",
        _named(file, started[1] if started else None, collective),
        len(devices) or None,
        len(hosts) or None,
        tuple(call for call in calls if call.nbytes and call.seconds > 0),
    )


def _of_json(file: Path, text: str, collective: str | None) -> CollectiveLog:
    try:
        data: Any = json.loads(text)
        name = str(data.get("program", data.get("config", {}).get("collective", ""))).removesuffix("_perf") or None
        hosts = [str(device["hostname"]) for device in data.get("devices", [])]
        calls = [
            LoggedCall(
                int(row["size"]), float(row["out_of_place"]["time"]) / 1e6, float(row["out_of_place"]["bus_bw"])
            )
            for row in data["results"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        missing = f"{error} is missing" if isinstance(error, KeyError) else error
        raise SpecError(f"{file}: no JSON of nccl-tests: {missing}") from None
    return CollectiveLog(
        "nccl-tests",
        _named(file, name if name in COLLECTIVES else None, collective),
        len(hosts) or None,
        len(set(hosts)) or None,
        tuple(call for call in calls if call.nbytes and call.seconds > 0),
    )


def _of_osu(text: str) -> CollectiveLog | None:
    """`osu_allreduce` and its like: bytes and average latency in us. None for another tool's text."""
    named = OSU.search(text)
    if named is None:
        return None
    name = named[1].lower().replace("_", "")
    known = {"bcast": "broadcast", **{each: each for each in COLLECTIVES.values()}}
    if name not in known:
        raise SpecError(f"OSU's {named[1]} is no collective here; known: {', '.join(sorted(known))}")
    rows = [line.split() for line in text.splitlines() if re.match(r"^\s*\d+\s+[\d.]+", line)]
    calls = tuple(LoggedCall(int(row[0]), float(row[1]) / 1e6, None) for row in rows if float(row[1]) > 0)
    return CollectiveLog("OSU", known[name], None, None, calls)
