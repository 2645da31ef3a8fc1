"""The options of this suite's programs, checked: what is wrong is one line with the option's name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from suite_programs import extreme_data
from suite_programs.hashing import BIN, CODE_BITS, KINDS
from suite_programs.kernels import SAMPLINGS
from suite_programs.tables import POLICIES

from scaleproof.spec.errors import SpecError
from scaleproof.spec.program_options import choice, real, whole

TOP = 10
"""Neurons of the largest inner products, of which tables should find more than their share."""
CHOICES: dict[str, list[str]] = {
    "method": ["slide", "full", "sampled"],
    "data": list(extreme_data.KINDS),
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
}
"""The least and the largest value of each whole number."""
REALS: dict[str, tuple[float, float]] = {"two": (0, 1), "decay": (0, math.inf), "rate": (0, 1), "spread": (0, 10)}
"""The same of each other number."""


@dataclass
class Options:
    """The case's options, those that it has checked."""

    given: Mapping[str, Any]

    def __post_init__(self) -> None:
        for name in self._given_of(CHOICES):
            choice(self.given, name, CHOICES[name])
        for name in self._given_of(RANGES):
            whole(self.given, name, *RANGES[name])
        for name in self._given_of(REALS):
            if not real(self.given, name, *REALS[name]) and name in ("rate", "spread"):
                raise SpecError(f"options.{name}: 0 lets nothing be learned")
        self._check_together()

    def _given_of(self, names: Mapping[str, object]) -> list[str]:
        return [name for name in names if name in self.given]

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
