"""The errors that a user's mistake raises, and how they name a file."""

from __future__ import annotations

from pathlib import Path


class SpecError(ValueError):
    """What a user wrote is wrong. The message is one line: where, what, and the nearest valid thing. The command ends
    with exit code 2."""


class FieldError(SpecError):
    """Fields of a case that are right alone and wrong together; `field` is the one to point at."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def shown(file: Path) -> str:
    """The file as a person would type it: relative where it lies below the working directory."""
    absolute = file.absolute()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(absolute)
