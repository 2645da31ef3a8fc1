"""What stands in for a part of the machine in a suite's own program: a device that is host memory, a driver whose
queries take a stated time, a core that burns for as long as something would compute. Only an option with the value
`emulated` allows it, and launches of a case with one are recorded as `emulated` (spec/evidence.py)."""

from __future__ import annotations

from scaleproof.spec.case import EMULATED, OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.registry import nearest


def stands_in(case: OwnCase, option: str, *real: str) -> bool:
    """Whether something shall stand in for what this option names. `real`: the values with which nothing does.
    SpecError for every other value, so that nothing stands in unsaid."""
    value = case.options[option]
    if value != EMULATED and value not in real:
        advice = nearest(str(value), [EMULATED, *real])
        raise SpecError(f"programs/{case.entry}.py, options.{option}: unknown value {value!r}; {advice}")
    return value == EMULATED


def check_stand_in(case: OwnCase, option: str) -> None:
    """SpecError for a case that does not say that something stands in for what this option names."""
    if option not in case.stand_ins:
        message = f"something stands in for {option!r}, so it needs the option `{option}: {EMULATED}`"
        raise SpecError(f"programs/{case.entry}.py: {message}")
