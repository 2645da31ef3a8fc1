"""Laws of delays as people write them: `exponential:0.1`, `gamma:1,1`, `uniform:0,0.3@0.25`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import AfterValidator

from scaleproof.spec.contention_law import Contention, slow_chains
from scaleproof.spec.law_text import number, split


class Law(NamedTuple):
    """Names of a law's numbers, and what it means."""

    numbers: tuple[str, ...]
    meaning: str


LAWS = {
    "fixed": Law(("S",), "S each time"),
    "uniform": Law(("LOW", "HIGH"), "anything between LOW and HIGH"),
    "exponential": Law(("MEAN",), "mean MEAN"),
    "gamma": Law(("SHAPE", "SCALE"), "mean SHAPE times SCALE"),
    "pareto": Law(("ALPHA", "LEAST"), "at least LEAST, and above x with probability (LEAST / x)^ALPHA (a heavy tail)"),
    "two_state": Law(
        ("S", "IN", "OUT", "HOSTS"),
        "S in all ranks of a host while it is slow: rank r is on host r mod HOSTS, which becomes slow with probability "
        "IN a step and fast again with OUT",
    ),
    "contention": Law(
        ("S", "FACTOR", "IN", "OUT", "HOSTS", "CORRELATION", "RHO", "SCALE", "NOISE"),
        "median S, FACTOR times as long while slow: a share CORRELATION of the ranks is slow with its host, as in "
        "two_state, the others by themselves with the same IN and OUT; its logarithm wanders by rank with standard "
        "deviation SCALE and correlation RHO from step to step, and has noise of standard deviation NOISE",
    ),
}
MEANING = (
    "in s of true time: "
    + "; ".join(f"{name}:{','.join(law.numbers)}: {law.meaning}" for name, law in LAWS.items())
    + ". LAW@SHARE: only that share of the ranks, drawn by the seed. Several laws add up: LAW+LAW."
)


@dataclass(frozen=True, slots=True)
class DelayLaw:
    """One law. `share`: of the ranks that it delays."""

    name: str
    numbers: tuple[float, ...]
    share: float = 1.0

    def drawn(self, rank: int, ranks: int, seed: int, number: int) -> float:
        """The delay of a rank's n-th step or message, in s, determined by the seed."""
        if rank not in _chosen(seed, ranks, round(self.share * ranks)):
            return 0.0
        if self.name == "fixed":
            return self.numbers[0]
        if self.name == "two_state":
            seconds, into, out, hosts = self.numbers
            slow = slow_chains((seed, 22), into, out, int(hosts), 1 << number.bit_length())
            return seconds * bool(slow[number, rank % int(hosts)])
        if self.name == "contention":
            return Contention(*self.numbers).delay(rank, ranks, seed, number)
        return self._value(np.random.default_rng((seed, 21, rank, number)))

    def _value(self, generator: np.random.Generator) -> float:
        first, *others = self.numbers
        if self.name == "uniform":
            return float(generator.uniform(first, others[0]))
        if self.name == "exponential":
            return float(generator.exponential(first))
        if self.name == "gamma":
            return float(generator.gamma(first, others[0]))
        if self.name == "pareto":
            return float(others[0] * (1.0 + generator.pareto(first)))
        return first


@lru_cache
def _chosen(seed: int, ranks: int, count: int) -> frozenset[int]:
    """Ranks that a law delays."""
    return frozenset(np.random.default_rng((seed, 20)).permutation(ranks)[:count].tolist())


@dataclass(frozen=True, slots=True)
class Delays:
    """Laws that add up."""

    laws: tuple[DelayLaw, ...] = ()

    def drawn(self, rank: int, ranks: int, seed: int, number: int) -> float:
        """The delay of a rank's n-th step or message, in s."""
        return sum(law.drawn(rank, ranks, seed, number) for law in self.laws)


@lru_cache
def delays_of(text: str | None) -> Delays:
    """Parses laws; None: no delay. Raises ValueError, with what is wrong and how it is written."""
    if text is None:
        return Delays()
    return Delays(tuple(_law(part.strip()) for part in text.split("+")))


def _law(text: str) -> DelayLaw:
    body, _, share = text.partition("@")
    name, written = split(body, "law", list(LAWS))
    wanted = LAWS[name].numbers
    if len(written) != len(wanted):
        raise ValueError(f"{text!r}: write {name}:{','.join(wanted)}")
    numbers = tuple(number(text, label, each) for label, each in zip(wanted, written, strict=True))
    _check(text, name, numbers)
    part = number(text, "SHARE", share) if share else 1.0
    if part > 1:
        raise ValueError(f"{text!r}: SHARE is at most 1")
    return DelayLaw(name, numbers, part)


def _check(text: str, name: str, numbers: tuple[float, ...]) -> None:
    if name == "uniform" and numbers[0] > numbers[1]:
        raise ValueError(f"{text!r}: LOW is above HIGH")
    if name == "two_state" and (numbers[1] > 1 or numbers[2] > 1 or numbers[3] < 1 or numbers[3] % 1):
        raise ValueError(f"{text!r}: IN and OUT are probabilities, HOSTS is a whole number of at least 1")
    if name == "contention" and (mistake := Contention(*numbers).mistake()):
        raise ValueError(f"{text!r}: {mistake}")
    if name in ("gamma", "pareto") and 0 in numbers:
        raise ValueError(f"{text!r}: numbers of {name} are above 0")


def _checked(text: Any) -> Any:
    if text is not None:
        delays_of(text)
    return text


DelayText = Annotated[str, AfterValidator(_checked)]
"""Laws as a case has them."""
