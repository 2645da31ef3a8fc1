"""Why a case cannot run here."""

from __future__ import annotations

from typing import NamedTuple

from scaleproof.core.missing_input import MissingInput
from scaleproof.spec.errors import SpecError


class Obstacle(NamedTuple):
    """`reason` and `advice` are sentences for people. `requirement` names what is not met, for code: two obstacles with
    the same requirement are the same one (see Failure.requirement)."""

    reason: str
    advice: str
    requirement: str = ""


def obstacle_of(error: SpecError, advice: str, requirement: str) -> Obstacle:
    """The obstacle that an error describes; `advice` is used where the error has none."""
    if isinstance(error, MissingInput):
        return Obstacle(error.reason, error.advice, requirement)
    return Obstacle(str(error), advice, requirement)
