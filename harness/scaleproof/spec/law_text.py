"""The one grammar of laws and faults as people write them: `NAME:NUMBER,NUMBER`. What numbers mean is said by each kind
(delay_law.py: s that a rank waits; straggler_law.py: factors on compute; faults.py: what happens to a rank)."""

from __future__ import annotations

import math
from collections.abc import Sequence


def split(text: str, kind: str, known: Sequence[str]) -> tuple[str, list[str]]:
    """The name and the numbers as they are written. `kind`: what is named. Raises ValueError for an unknown name."""
    from scaleproof.spec.registry import nearest  # `--help`, which shows the laws, imports nothing heavy

    name, _, rest = text.partition(":")
    if name not in known:
        raise ValueError(f"unknown {kind} {name!r}; {nearest(name, list(known))}")
    return name, rest.split(",") if rest else []


def number(
    text: str, label: str, written: str, above: float = 0.0, most: float = math.inf, or_equal: bool = True
) -> float:
    """A finite number more than `above`, or equal to it where `or_equal`, and at most `most`. Raises ValueError."""
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    enough = value >= above if or_equal else value > above
    if not (enough and value <= most and math.isfinite(value)):
        least = "of at least" if or_equal else "above"
        upto = f" and at most {most:g}" if math.isfinite(most) else ""
        raise ValueError(f"{text!r}: {label} is a number {least} {above:g}{upto}")
    return value
