"""The sentences of notes; no code reads these sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scaleproof.claims.notes import Note, NoteCode
from scaleproof.claims.sentences import fields_text, number

Values = Mapping[str, Any]
TEMPLATES: dict[NoteCode, str] = {
    NoteCode.NEEDS: "needs {needs}",
    NoteCode.NOT_RUNNABLE: "{message}; {advice}",
    NoteCode.NONE_FINISHED: "none of {planned} planned launches finished, {failed} failed",
    NoteCode.NOT_PLANNED: "size {size} plans none of its launches",
    NoteCode.NO_SUCH_SIZE: "size {size} sends no messages of {nbytes} bytes",
    NoteCode.EXCLUDED: "{excluded} of {launches} launches excluded: {why}",
    NoteCode.UNFINISHED: "{finished} of {planned} planned launches finished",
    NoteCode.LEFT_OUT: "{launches} launches of other machines or code versions left out",
    NoteCode.FURTHEST_APART: "furthest apart: {share:+.1%} ({case})",
    NoteCode.FURTHEST_IN_POINTS: "furthest apart: {points:+.1f} points ({case})",
    NoteCode.STOPPED: "{words}",
    NoteCode.CAUSE: "cause: {words}",
    NoteCode.NO_PROFILE: (
        "this machine has no noise floors yet, so its timings decide nothing: type scaleproof calibrate"
    ),
    NoteCode.FEW_LAUNCHES: "only {launches} launches a side: no 95 % interval",
    NoteCode.WITHOUT_VALUE: (
        "{without} of {launches} launches are not in the number: no {metric}, or no counterpart in their block"
    ),
    NoteCode.ONE_AFTER_THE_OTHER: (
        "in {apart} of {campaigns} campaigns all launches of one side began before those of the other, so they may "
        "differ by the time alone: repeat the experiment with --again"
    ),
    NoteCode.PLACEMENT: "{placement}: {message}; {advice}",
    NoteCode.NEVER_VALIDATED: "suite validation was not judged on this machine: type `snakemake validation`",
    NoteCode.NOTHING_VALIDATES: "no claim of suite validation is about {evidence} launches like this one",
    NoteCode.LOWER_LEVEL_MISSED: ("{claim} was judged against {evidence} launches, whose validation was missed"),
    NoteCode.NOT_JUDGED_HERE: "{what}: not judged here",
    NoteCode.OTHER_CODE: "{what}: not judged here with this version of the code",
    NoteCode.UNDECIDED: "{what}: {claim} (size {size}) is {verdict}",
    NoteCode.HOLDS: "{claim} (size {size})",
}


SHOWN = 3
"""Words of launches in a sentence; the note has all."""


def note_sentence(note: Note) -> str:
    """The sentence of a note."""
    if note.code in TEMPLATES:
        return TEMPLATES[note.code].format(**note.values)
    return _SPECIAL[note.code](note.values)


def _nothing_to_show(values: Values) -> str:
    """Without what is needed where the entry names nothing."""
    needs = values.get("needs")
    return "nothing of ours to show" if needs is None else f"nothing of ours to show: needs {needs}"


def _all_oversubscribed(values: Values) -> str:
    crowded = f"all {values['launches']} launches are oversubscribed ({_crowd(values)})"
    return f"{crowded}: their times say nothing about {values['metric']}; needs a core for every thread"


def _no_floor(values: Values) -> str:
    kinds = "; ".join(values["kinds"])
    return f"no noise floor of {values['metric']} for launches of kind {kinds}: type {_calibrate(values)}"


def _floor_of_other_code(values: Values) -> str:
    kinds = "; ".join(values["kinds"])
    floor = (
        f"the noise floor of {values['metric']} for launches of kind {kinds} was measured with other code than these"
    )
    return f"{floor}: to measure it again, type scaleproof calibrate, then {_calibrate(values)}"


def _calibrate(values: Values) -> str:
    return f"scaleproof calibrate {values['suite']} --size {values['size']}"


def _no_value(values: Values) -> str:
    where = {"launch": "", "sides": " on both sides", "arms": " in enough arms"}[values["compared"]]
    return f"no launch gave {values['metric']}{where}"


def _score(values: Values) -> str:
    value = "none" if values["value"] is None else f"{values['value']:.4g} {values.get('unit', 's')}"
    fields = ", ".join(f"{name} {of_side}" for name, of_side in values["fields"].items())
    return f"MLPerf score {value} ({fields}): {values['why']}"


def _without_number(values: Values) -> str:
    each = [f"{said} ({count})" if count > 1 else said for said, count in values["words"].items()]
    words = "; ".join(each[:SHOWN]) + ("; ..." if len(each) > SHOWN else "")
    fields = ", ".join(f"{name} {of_side}" for name, of_side in values["fields"].items())
    without = f"{sum(values['words'].values())} of {values['launches']} launches"
    return f"{without} ({fields}) have no number and count as worse than every number: {words}"


def _partly_planned(values: Values) -> str:
    fields = "; ".join(f"{name} {', '.join(map(str, absent))}" for name, absent in values["fields"].items())
    return f"not at size {values['size']}: {fields}"


def _outliers(values: Values) -> str:
    named = ", ".join(f"{launch} ({value:.4g})" for launch, value in values["outside"].items())
    side = _side(values["side"])
    return f"{len(values['outside'])} of {values['launches']} launches{side} outside Tukey's fences, kept: {named}"


def _side(side: str | Mapping[str, Any] | None) -> str:
    if side is None:
        return ""
    if isinstance(side, str):
        return f" {side} the line"
    return " of " + ", ".join(f"{name}={value}" for name, value in side.items())


def _oversubscribed(values: Values) -> str:
    return f"{values['crowded']} of {values['launches']} launches were oversubscribed: {_crowd(values)}"


def _oversubscribed_left_out(values: Values) -> str:
    return f"{values['crowded']} oversubscribed launches left out: {_crowd(values)}"


def _crowd(values: Values) -> str:
    return ", ".join(
        f"{ranks} ranks with {threads} thread{'s' if threads > 1 else ''} on {cores} cores"
        for ranks, threads, cores in values["crowd"]
    )


def _missed(values: Values) -> str:
    return f"{values['claim']} (size {values['size']}) is missed by {number(values['by'])} {values['unit']}"


def _not_covered(values: Values) -> str:
    return f"{values['what']}: not judged on {fields_text(values['fields'])}"


_SPECIAL: dict[NoteCode, Callable[[Values], str]] = {
    NoteCode.NOTHING_TO_SHOW: _nothing_to_show,
    NoteCode.ALL_OVERSUBSCRIBED: _all_oversubscribed,
    NoteCode.NO_FLOOR: _no_floor,
    NoteCode.FLOOR_OF_OTHER_CODE: _floor_of_other_code,
    NoteCode.NO_VALUE: _no_value,
    NoteCode.PARTLY_PLANNED: _partly_planned,
    NoteCode.SCORE: _score,
    NoteCode.WITHOUT_NUMBER: _without_number,
    NoteCode.OUTLIERS: _outliers,
    NoteCode.OVERSUBSCRIBED: _oversubscribed,
    NoteCode.OVERSUBSCRIBED_LEFT_OUT: _oversubscribed_left_out,
    NoteCode.MISSED: _missed,
    NoteCode.NOT_COVERED: _not_covered,
}
