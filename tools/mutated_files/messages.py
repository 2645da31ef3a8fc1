"""What is wrong with a message: it has to be one line that says where, what, and the nearest valid name."""

from __future__ import annotations

import re
from pathlib import Path

_LOCATED = re.compile(r"(?P<path>[^:]+\.ya?ml):(?P<line>\d+): (?P<message>.+)")
_UNKNOWN_NAME = re.compile(r"\bunknown\b(?!')|\bno such\b|\bhas no (?!value|convolution)\w+ '|has the field")
_NEAREST = re.compile(r"did you mean|known: |it has none|have it|has it|there is none|holds none|one of|such as")
_OF_LIBRARIES = re.compile(r"Input should|Value error|Assertion failed|Traceback|<class |object at 0x|validation error")


def fault_of(message: str, folder: Path) -> str | None:
    """The first thing wrong with a message about a file in `folder`; None where it is as it should be."""
    if len(message.splitlines()) != 1:
        return "not one line"
    located = _LOCATED.match(message)
    if located is None:
        return "does not begin with file and line"
    path = folder / located["path"]
    if not path.exists():
        return f"there is no file {located['path']!r}"
    if not 1 <= int(located["line"]) <= path.read_bytes().count(b"\n") + 1:
        return f"the file has no line {located['line']}"
    if _OF_LIBRARIES.search(message):
        return "words of a library"
    if _UNKNOWN_NAME.search(located["message"]) and not _NEAREST.search(located["message"]):
        return "an unknown name without the nearest valid one"
    return None
