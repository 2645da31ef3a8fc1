"""The options of this suite's programs, checked: what is wrong is one line with the option's name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from suite_programs.hashing import BIN, CODE_BITS, KINDS
from suite_programs.kernels import SAMPLINGS
from suite_programs.tables import POLICIES

from scaleproof.spec.errors import SpecError
from scaleproof.spec.registry import nearest

TOP = 10
"""Neurons of the largest inner products, of which tables should find more than their share."""
CHOICES: dict[str, list[str]] = {
    "method": ["slide", "full", "sampled"],
    "hash": ["simhash", *KINDS],
    "sampling": list(SAMPLINGS),
    "policy": list(POLICIES),
    "adam": ["lazy", "dense"],
    "pages": ["ordinary", "huge"],
}
COUNTS = ("train", "test", "batch", "classes", "bits", "tables", "room", "most", "least", "period", "queries")
SWITCHES = ("shuffled", "centred", "permuted", "rates")
MOST_BITS = 24
"""Of SimHash: a table has 2^bits buckets."""
RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(COUNTS, (1, math.inf)),
    **dict.fromkeys(SWITCHES, (0, 1)),
    "labels": (TOP + 1, math.inf),
    "units": (BIN, math.inf),
    "fill": (0, math.inf),
    "rehash": (0, math.inf),
    "shift": (0, CODE_BITS),
    "two": (0, 1),
    "decay": (0, math.inf),
    "rate": (0, 1),
    "spread": (0, 10),
}
"""The least and the largest value of each number."""


@dataclass
class Options:
    """The case's options, those that it has checked."""

    given: Mapping[str, Any]

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if name in self.given and self.text(name) not in allowed:
                raise SpecError(
                    f"options.{name}: unknown value {self.text(name)!r}; {nearest(self.text(name), allowed)}"
                )
        for name in RANGES:
            if name in self.given:
                self._check_range(name)
        self._check_together()

    def _check_range(self, name: str) -> None:
        low, high = RANGES[name]
        try:
            value = float(self.given[name])
        except ValueError:
            raise SpecError(f"options.{name}: {self.given[name]!r} is not a number") from None
        if not low <= value <= high or math.isinf(value):
            limit = f"less than {low:g}" if value < low else f"more than {high:g}"
            raise SpecError(f"options.{name}: {self.given[name]} is {limit if math.isfinite(value) else 'not finite'}")
        if name in ("rate", "spread") and not value:
            raise SpecError(f"options.{name}: 0 lets nothing be learned")

    def _check_together(self) -> None:
        has = self.given.keys()
        if {"train", "batch"} <= has and self.number("train") < self.number("batch"):
            raise SpecError(f"options.batch: {self.number('batch')} samples of {self.number('train')}")
        if has >= {"method"} and self.text("method") == "sampled" and self.number("classes") > self.number("labels"):
            raise SpecError(f"options.classes: {self.number('classes')} of {self.number('labels')} labels")
        if {"fill", "labels"} <= has and self.number("fill") > self.number("labels"):
            raise SpecError(f"options.fill: {self.number('fill')} neurons of {self.number('labels')} labels")
        if {"hash", "bits"} <= has:
            simhash, bits = self.text("hash") == "simhash", self.number("bits")
            if bits > (MOST_BITS if simhash else BIN):
                what = f"2^{bits} buckets a table" if simhash else f"{bits} codes of {CODE_BITS} bits"
                raise SpecError(f"options.bits: {what} are too many; at most {MOST_BITS if simhash else BIN}")

    def text(self, name: str) -> str:
        """An option that is a word."""
        return str(self.given[name])

    def number(self, name: str) -> int:
        """An option that is a whole number."""
        return int(self.given[name])

    def real(self, name: str) -> float:
        """An option that is a number."""
        return float(self.given[name])
