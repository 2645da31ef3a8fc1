"""Notes about a claim's launches, as a code with fields; `claims/note_sentences.py` makes their sentences."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from scaleproof.claims.claim_form import Form

SideName = Literal["above", "below"] | Mapping[str, Any] | None
"""A side of a comparison: above or below the line of a ratio, or an arm by its fields; None where there is only one
side."""


class NoteCode(StrEnum):
    """What a note says."""

    NEEDS = "needs"
    NOTHING_TO_SHOW = "nothing to show"
    NOT_RUNNABLE = "not runnable"
    NONE_FINISHED = "none finished"
    NOT_PLANNED = "not planned"
    PARTLY_PLANNED = "partly planned"
    NO_SUCH_SIZE = "no such size"
    ALL_OVERSUBSCRIBED = "all oversubscribed"
    NO_VALUE = "no value"
    EXCLUDED = "excluded"
    UNFINISHED = "unfinished"
    LEFT_OUT = "left out"
    FURTHEST_APART = "furthest apart"
    FURTHEST_IN_POINTS = "furthest in points"
    SCORE = "score"
    WITHOUT_NUMBER = "without number"
    STOPPED = "stopped"
    CAUSE = "cause"
    OUTLIERS = "outliers"
    NO_PROFILE = "no profile"
    NO_FLOOR = "no floor"
    FLOOR_OF_OTHER_CODE = "floor of other code"
    FEW_LAUNCHES = "few launches"
    OVERSUBSCRIBED = "oversubscribed"
    OVERSUBSCRIBED_LEFT_OUT = "oversubscribed left out"
    WITHOUT_VALUE = "without value"
    PLACEMENT = "placement"
    ONE_AFTER_THE_OTHER = "one after the other"
    # Of suite validation, about the evidence of a claim:
    NEVER_VALIDATED = "never validated"
    NOTHING_VALIDATES = "nothing validates"
    MISSED = "missed"
    LOWER_LEVEL_MISSED = "lower level missed"
    NOT_JUDGED_HERE = "not judged here"
    OTHER_CODE = "other code"
    UNDECIDED = "undecided"
    NOT_COVERED = "not covered"
    HOLDS = "holds"


class Note(Form):
    """One note."""

    code: NoteCode
    values: dict[str, Any] = Field(default={}, description="fields of this code, as numbers, names and lists of them")


def note(code: NoteCode, **values: Any) -> Note:
    """A note with these fields."""
    return Note(code=code, values=values)
