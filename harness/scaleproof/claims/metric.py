"""What a metric is: a named estimator with its unit and direction, computed from launches, or arithmetic."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from scaleproof.claims.arithmetic import Arguments, Ends, Published
from scaleproof.claims.beyond_floor import FloorRange, HowNoiseEnters
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import MakeUp
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase

Direction = Literal["higher", "lower"] | None
PerLaunch = Callable[[Record, pd.DataFrame], float | None]
PerSize = Callable[[Record, pd.DataFrame, int], float | None]
PerPair = Callable[[Launch, Launch, float | None], float | None]
"""From a launch and its base, with the machine's noise floor as a share: a difference within it is none."""
PerBlock = Callable[[Sequence[Launch], float | None], float | FloorRange | None]
"""From the selected launches of one repetition, and the noise floor: several arms together give one value."""
Model = Callable[[Any, Published], float | Ends]
"""Arithmetic on the claim's `x`, in the metric's form of it, and the paper's rows; no launches. Both ends where what
`x` has is known as a range."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A named estimator. Exactly one of the functions is set.

    `apart` combines the relative differences of `ratio_of` between two levels of evidence, one per case, into one value
    (claims/level_difference.py); with `points` the differences themselves, of a share. `x` is the form of the claim's
    `x` that `model` takes. `scaled_by_ranks` divides a
    ratio by the ratio of ranks. `clocked` marks shares and ratios within a launch that come from clocks; for times and
    rates the unit shows it. `noise_of`: of a block or a
    pair of launches, the metrics of single launches whose noise floor counts, the first that a program has. `noise`:
    how the floor enters the value (claims/beyond_floor.py). `own_count` marks what our own code counts, and identities
    of it: entries with it are checks, since it says nothing about the world. `predicts`: a model's answer, from what
    launches measured, for something that was not run: entries with it are context. `moves_one_way`: in which cases
    it is a rate of bytes that move from one rank to another, so that one copy of memory, or one stream over loopback,
    bounds it. `link_directions`: a rate of bytes through one node's link, in so many directions. `flop_per_sample`: a
    rate of samples that cost the cores so much each (None: nothing). `doc`: the page's text, else the function's
    docstring.
    `counts_oversubscribed`: what a machine does while its cores are busy, so that launches with more threads than cores
    count too.
    `made_up` makes a launch with a wanted value; `range`: what launches have (None: 0 to 1 for shares, else from 0).
    `instead` says in words what a launch has in place of a number (it diverged, it never reached its target): such a
    launch counts as worse than every number. `same`: of a pair, the fields of the case that both launches share (None:
    those of one training). `curve`: launches note it at several steps, under its own name; the last value is theirs.
    """

    name: str
    unit: str
    direction: Direction
    launch: PerLaunch | None = None
    size: PerSize | None = None
    pair: PerPair | None = None
    block: PerBlock | None = None
    ratio_of: str | None = None
    model: Model | None = None
    x: type[Arguments] = Arguments
    apart: Callable[[Sequence[float]], float] | None = None
    points: bool = False
    scaled_by_ranks: bool = False
    clocked: bool = False
    noise_of: tuple[str, ...] = ()
    noise: HowNoiseEnters = "factor"
    own_count: bool = False
    predicts: bool = False
    counts_oversubscribed: bool = False
    moves_one_way: Callable[[AnyCase], bool] | None = None
    link_directions: int = 0
    flop_per_sample: Callable[[AnyCase], float | None] | None = None
    doc: str = ""
    made_up: MakeUp | None = None
    range: tuple[float, float] | None = None
    instead: Callable[[Record, pd.DataFrame], str | None] | None = None
    same: tuple[str, ...] | None = None
    curve: bool = False

    @property
    def possible(self) -> tuple[float, float]:
        """The least and the largest value that launches can have."""
        if self.ratio_of and self.apart is None:
            return 0.0, math.inf
        return self.range or (0.0, 1.0 if self.unit in ("fraction", "bool") and self.apart is None else math.inf)

    @property
    def is_rate(self) -> bool:
        """Whether it counts something per second."""
        return self.unit.endswith("/s")

    @property
    def timing(self) -> bool:
        """Whether its values come from clocks: then the machine's noise floor counts, and oversubscribed launches do
        not."""
        if self.ratio_of:
            return METRICS[self.ratio_of].timing
        return self.clocked or self.unit == "s" or self.is_rate

    def by_size(self, record: Record, samples: pd.DataFrame) -> dict[int, float | None]:
        """Values at the message sizes of a launch's case; empty for a metric that is not per message size."""
        if self.size is None:
            return {}
        return {nbytes: self.size(record, samples, nbytes) for nbytes in getattr(record.case, "sizes", ())}

    @property
    def page(self) -> str:
        """Path of its page."""
        return f"docs/metrics/{self.name}.md"

    @property
    def page_text(self) -> str:
        """Its page as Markdown: unit, better direction, and `doc` or the function's docstring."""
        function = self.launch or self.size or self.pair or self.block or self.model
        text = inspect.cleandoc(self.doc or (function.__doc__ if function else "") or "")
        unit = f"{self.unit} (10^9 bytes)" if self.unit == "GB/s" else self.unit
        head = f"| | |\n|---|---|\n| unit | {unit} |\n| better | {self.direction or 'neither'} |"
        if self.own_count:
            head += "\n| kind | counted by our own code: an entry with it is a check |"
        if self.predicts:
            head += "\n| kind | predicted by a model for what was not run: an entry with it is context |"
        return f"# {self.name}\n\n{head}\n\n{text}\n"


METRICS: dict[str, Metric] = {}
"""The harness's metrics by name; claims/metrics.py fills it."""
