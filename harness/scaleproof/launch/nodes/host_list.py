"""A list of hosts: `a:4,b:4`, or a file with one host per line, as `a:4` or in the form of Open MPI, `a slots=4`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from scaleproof.spec.errors import SpecError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")
"""Without characters that have a meaning for a shell or an option parser."""
_LINE = re.compile(r"(?P<name>[^\s:]+)(?:\s*:\s*|\s+slots\s*=\s*|)(?P<slots>\S*)$")


@dataclass(frozen=True, slots=True)
class Host:
    """A node by its name. `slots`: how many ranks may run on it; None: as many as it has cores."""

    name: str
    slots: int | None = None
    switch: str = ""


def parse(text: str) -> tuple[Host, ...]:
    """The hosts of a list, or of the file that `text` names. SpecError names the entry that is wrong."""
    path = Path(text)
    if os.path.isfile(text):  # Path.is_file raises where a list is longer than a name may be
        lines = [line.partition("#")[0].strip() for line in path.read_text().splitlines()]
        entries, source = [line for line in lines if line], f"{path}: "
    else:
        entries, source = [entry.strip() for entry in text.split(",")], "--hosts: "
    if not entries or not all(entries):
        raise SpecError(
            f"{source}{text!r} names no host, or has an empty entry; "
            "write a:4,b:4, or the path of a file with one host per line"
        )
    hosts = tuple(_host(entry, source) for entry in entries)
    names = [host.name for host in hosts]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SpecError(f"{source}host {twice!r} is listed twice; write it once with all its slots, as {twice}:4")
    return hosts


def _host(entry: str, source: str) -> Host:
    match = _LINE.match(entry)
    if match is None or not _NAME.fullmatch(match["name"]):
        raise SpecError(f"{source}{entry!r} is no host; write name:slots, as a:4")
    slots = match["slots"]
    if slots and (not slots.isdigit() or int(slots) == 0):
        raise SpecError(
            f"{source}{entry!r}: {slots!r} is no number of slots, "
            "the number of ranks that may run on the host, at least 1"
        )
    return Host(match["name"], int(slots) if slots else None)
