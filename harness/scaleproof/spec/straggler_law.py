"""Laws of stragglers as people write them: `pareto:3`, `slow:8,0.01`, `spread:0.02,0.05`, `fitted`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from scaleproof.spec.law_text import number, split

Name = Literal["lognormal", "pareto", "exponential", "slow", "spread", "fitted", "node", "none"]
NO_LAW, NODE_LAW = "none", "node"


class Number(NamedTuple):
    """A number of a law: more than `above`, at most `most`; `default` None: it has to be written. `or_equal`: `above`
    itself is allowed."""

    name: str
    above: float
    most: float = math.inf
    default: float | None = None
    or_equal: bool = False


class Form(NamedTuple):
    """A law's numbers, and what it means."""

    numbers: tuple[Number, ...]
    meaning: str


SHARE = Number("SHARE", 0.0, 1.0, 1.0)
FORMS: dict[Name, Form] = {
    "lognormal": Form((Number("SIGMA", 0.0), SHARE), "median 1, its logarithm has standard deviation SIGMA"),
    "pareto": Form((Number("ALPHA", 1.0), SHARE), "at least 1, and above x with probability x^-ALPHA (a heavy tail)"),
    "exponential": Form((Number("MEAN", 0.0), SHARE), "1 and an exponential part of mean MEAN"),
    "slow": Form((Number("FACTOR", 1.0), SHARE._replace(default=None)), "FACTOR"),
    "spread": Form(
        (
            Number("STEP", 0.0, or_equal=True),
            Number("RANK", 0.0, default=0.0, or_equal=True),
            Number("FACTOR", 1.0, default=1.0, or_equal=True),
            Number("LATE", 0.0, 1.0, default=0.0, or_equal=True),
        ),
        "median 1, its logarithm has standard deviation STEP from step to step and RANK between ranks (the same in all "
        "steps); a share LATE of steps takes FACTOR times as long",
    ),
    "fitted": Form((), "as `scaleproof fit` measured on this machine"),
    "node": Form((), "as the node type states"),
    "none": Form((), "1"),
}


def _usage(law: Name) -> str:
    numbers = FORMS[law].numbers
    needed = ",".join(number.name for number in numbers if number.default is None)
    more = "".join(f"[,{number.name}]" for number in numbers if number.default is not None)
    return f"{law}:{needed}{more}" if numbers else law


MEANING = (
    "Law of the factor by which a rank computes longer in a step, drawn anew for each rank and step: "
    + "; ".join(f"{_usage(name)}: {form.meaning}" for name, form in FORMS.items())
    + ". SHARE: of steps that have such a factor, others have 1 (default: 1, all steps)."
)


@dataclass(frozen=True, slots=True)
class StragglerLaw:
    """A law with its numbers; `fitted`, `node` and `none` have none."""

    name: Name
    numbers: tuple[float, ...] = ()

    @property
    def text(self) -> str:
        """As it is written, with every number."""
        return f"{self.name}:{','.join(map(repr, self.numbers))}" if self.numbers else self.name


def straggler_law(text: str) -> StragglerLaw:
    """Parses a law. Raises ValueError, with what is wrong and how it is written."""
    name, written = split(text, "law", get_args(Name))
    law: Name = name  # type: ignore[assignment]
    form = FORMS[law]
    least = sum(number.default is None for number in form.numbers)
    if not least <= len(written) <= len(form.numbers):
        raise ValueError(f"{text!r}: write {_usage(law)}")
    values = [
        number(text, f"{each.name} of {law}", part, each.above, each.most, each.or_equal)
        for each, part in zip(form.numbers, written, strict=False)
    ]
    values += [each.default for each in form.numbers[len(written) :] if each.default is not None]
    return StragglerLaw(law, tuple(values))
