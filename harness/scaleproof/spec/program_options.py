"""Options of a suite's own program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from scaleproof.spec.errors import SpecError


class ProgramOptions(dict[str, str | int | float]):
    """By name. Reading one that the case lacks raises SpecError, one line with the program and what there is."""

    def __init__(self, entry: str, values: Mapping[str, str | int | float]) -> None:
        super().__init__(values)
        self._entry = entry

    def __missing__(self, name: str) -> NoReturn:
        from scaleproof.spec.registry import nearest

        there = f"the case has {', '.join(self)}" if self else "the case has none"
        advice = nearest(name, list(self)) if self else ""
        similar = f"; {advice}" if advice.startswith("did you mean") else ""
        raise SpecError(f"programs/{self._entry}.py needs option {name!r} (options.{name}); {there}{similar}")
