"""A list of hosts: `a:4,b:4`, or a file with one a line, as `a:4` or as Open MPI writes them, `a slots=4`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from scaleproof.spec.errors import SpecError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")
"""Nothing that a shell or an option parser would read otherwise."""
_LINE = re.compile(r"(?P<name>[^\s:]+)(?:\s*:\s*|\s+slots\s*=\s*|)(?P<slots>\S*)$")


@dataclass(frozen=True, slots=True)
class Host:
    """A node by its name, and how many ranks may stand on it; None: as many as it has cores."""

    name: str
    slots: int | None = None
    switch: str = ""


def parse(text: str) -> tuple[Host, ...]:
    """From the list, or from the file that it names. SpecError names the entry that is wrong."""
    path = Path(text)
    if os.path.isfile(text):  # Path.is_file raises where a list is longer than a name may be
        lines = [line.partition("#")[0].strip() for line in path.read_text().splitlines()]
        entries, where = [line for line in lines if line], f"{path}: "
    else:
        entries, where = [entry.strip() for entry in text.split(",")], "--hosts: "
    if not entries or not all(entries):
        raise SpecError(
            f"{where}{text!r} names no host, or has an empty place; "
            "write a:4,b:4, or the path of a file with one host a line"
        )
    hosts = tuple(_host(entry, where) for entry in entries)
    names = [host.name for host in hosts]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SpecError(f"{where}host {twice!r} stands there twice; give it all its slots at once, as {twice}:4")
    return hosts


def _host(entry: str, where: str) -> Host:
    match = _LINE.match(entry)
    if match is None or not _NAME.fullmatch(match["name"]):
        raise SpecError(f"{where}{entry!r} is no host; write name:slots, as a:4")
    slots = match["slots"]
    if slots and (not slots.isdigit() or int(slots) == 0):
        raise SpecError(
            f"{where}{entry!r}: {slots!r} is no number of slots; it counts the ranks that may stand there, at least 1"
        )
    return Host(match["name"], int(slots) if slots else None)
