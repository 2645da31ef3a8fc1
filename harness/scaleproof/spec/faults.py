"""Faults of a case as people write them: `kill:3@10`, `replace:3,0.5@2.5s`, `pause:1,2@4`, `lose:0.01,0.2`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator

from scaleproof.spec.law_text import number, split

Name = Literal["kill", "replace", "pause", "lose"]


class Form(NamedTuple):
    """Names of a fault's numbers, whether it has a moment, and what it means."""

    numbers: tuple[str, ...]
    has_moment: bool
    meaning: str


FORMS: dict[Name, Form] = {
    "kill": Form(("RANK",), True, "the rank is killed, and the others go on without it"),
    "replace": Form(
        ("RANK", "S"),
        True,
        "the rank is killed, and S later a successor takes its place, with the step that the rank did not finish",
    ),
    "pause": Form(("RANK", "S"), True, "the rank begins nothing and answers nothing for S"),
    "lose": Form(
        ("SHARE", "S"), False, "that share of all calls gets lost on the way; who waits for an answer gives up after S"
    ),
}


def _usage(name: Name) -> str:
    form = FORMS[name]
    return f"{name}:{','.join(form.numbers)}" + ("@MOMENT" if form.has_moment else "")


MEANING = (
    "; ".join(f"{_usage(name)}: {form.meaning}" for name, form in FORMS.items())
    + ". S: s of true time. MOMENT: the begin of a step, counted from 0 with the warm-up (10), or s of true time since "
    "all ranks began (2.5s), when a rank that has ended its steps is spared. Several faults are added: FAULT+FAULT."
)


@dataclass(frozen=True, slots=True)
class Moment:
    """The begin of a step, or s of true time since all ranks began: one of them."""

    step: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to a rank. `seconds`: how long it pauses; until its successor begins (None: it has none)."""

    name: Name
    rank: int
    moment: Moment
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """`share` of calls gets lost; their callers give up after `patience_s` of true time."""

    share: float = 0.0
    patience_s: float = 0.0

    def takes(self, seed: int, rank: int, number: int) -> bool:
        """Whether a rank's n-th call gets lost, determined by the seed."""
        return self.share > 0 and bool(np.random.default_rng((seed, 27, rank, number)).random() < self.share)


@dataclass(frozen=True, slots=True)
class Faults:
    """All faults of a case."""

    of_ranks: tuple[Fault, ...] = ()
    loss: Loss = Loss()

    @property
    def names(self) -> frozenset[Name]:
        """Of all faults."""
        found: set[Name] = {fault.name for fault in self.of_ranks}
        return frozenset(found | ({"lose"} if self.loss.share else set()))

    @property
    def mortal(self) -> frozenset[int]:
        """Ranks that are killed."""
        return frozenset(fault.rank for fault in self._kills())

    @property
    def returning(self) -> frozenset[int]:
        """Ranks that have a successor."""
        return frozenset(fault.rank for fault in self._kills() if fault.seconds is not None)

    def death_of(self, rank: int) -> Fault | None:
        """How a rank is killed."""
        return next((fault for fault in self._kills() if fault.rank == rank), None)

    def pauses_of(self, rank: int) -> list[Fault]:
        """When a rank pauses."""
        return [fault for fault in self.of_ranks if fault.name == "pause" and fault.rank == rank]

    @property
    def longest_wait_s(self) -> float:
        """The longest time, in s of true time, for which a fault lets a rank do nothing."""
        return max([self.loss.patience_s, *(fault.seconds or 0.0 for fault in self.of_ranks)])

    def _kills(self) -> Iterator[Fault]:
        return (fault for fault in self.of_ranks if fault.name in ("kill", "replace"))


@lru_cache
def faults_of(text: str | None) -> Faults:
    """Parses faults; None: there are none. Raises ValueError, with what is wrong and how it is written."""
    if text is None:
        return Faults()
    parts = [_fault(part.strip()) for part in text.split("+")]
    losses = [part for part in parts if isinstance(part, Loss)]
    if len(losses) > 1:
        raise ValueError(f"{text!r}: one `lose` is for all calls")
    of_ranks = tuple(part for part in parts if isinstance(part, Fault))
    return Faults(of_ranks, losses[0] if losses else Loss())


def _fault(text: str) -> Fault | Loss:
    body, at, moment = text.partition("@")
    known, written = split(body, "fault", list(FORMS))
    name: Name = known  # type: ignore[assignment]
    form = FORMS[name]
    if len(written) != len(form.numbers) or bool(at) != form.has_moment:
        raise ValueError(f"{text!r}: write {_usage(name)}")
    numbers = [number(text, label, each) for label, each in zip(form.numbers, written, strict=True)]
    if name == "lose":
        if not 0 < numbers[0] < 1:
            raise ValueError(f"{text!r}: SHARE is above 0 and below 1")
        return Loss(*numbers)
    if numbers[0] % 1:
        raise ValueError(f"{text!r}: RANK is a whole number")
    return Fault(name, int(numbers[0]), _moment(text, moment), *numbers[1:])


def _moment(text: str, written: str) -> Moment:
    if written.endswith("s"):
        return Moment(seconds=number(text, "MOMENT", written[:-1]))
    if not written.isdecimal():
        raise ValueError(f"{text!r}: MOMENT is a step (10) or s of true time (2.5s)")
    return Moment(step=int(written))


def _checked(text: Any) -> Any:
    if text is not None:
        faults_of(text)
    return text


FaultText = Annotated[str, AfterValidator(_checked)]
"""Faults as a case has them."""
