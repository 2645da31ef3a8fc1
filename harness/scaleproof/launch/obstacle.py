"""Why a case cannot run here."""

from __future__ import annotations

from typing import NamedTuple

from scaleproof.core.missing_input import MissingInput
from scaleproof.spec.errors import SpecError


class Obstacle(NamedTuple):
    """Both are sentences for people."""

    reason: str
    advice: str


def obstacle_of(error: SpecError, advice: str) -> Obstacle:
    """The obstacle that an error tells; `advice` where the error has none of its own."""
    if isinstance(error, MissingInput):
        return Obstacle(error.reason, error.advice)
    return Obstacle(str(error), advice)
