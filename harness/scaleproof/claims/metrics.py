"""The harness's metrics by name, with unit and direction; each has a page in docs/metrics/."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pandas as pd

from scaleproof.claims import (
    metrics_networks,
    metrics_pairs,
    metrics_programs,
    metrics_quality,
    metrics_ratios,
    metrics_replicas,
    metrics_sizes,
    metrics_split,
    metrics_train,
    metrics_wire,
    stragglers,
)
from scaleproof.claims.arithmetic import Arguments, Published
from scaleproof.claims.beyond_floor import FloorRange, HowNoiseEnters
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import MakeUp, lasting, reporting
from scaleproof.claims.metrics_sizes import PAGES, by_size
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase
from scaleproof.stats.intervals import median

__all__ = ["METRICS", "PER_LAUNCH", "Metric", "by_size"]

Direction = Literal["higher", "lower"] | None
PerLaunch = Callable[[Record, pd.DataFrame], float | None]
PerSize = Callable[[Record, pd.DataFrame, int], float | None]
PerPair = Callable[[Launch, Launch, float | None], float | None]
"""From a launch and its base, with the machine's noise floor as a share: a difference within it is none."""
PerBlock = Callable[[Sequence[Launch], float | None], float | FloorRange | None]
"""From the selected launches of one repetition, and the noise floor: several arms together give one value."""
Model = Callable[[Any, Published], float]
"""Arithmetic on the claim's `x`, in the metric's form of it, and the paper's rows; no launches."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A named estimator. Exactly one of the functions is set.

    `apart` combines the relative differences of `ratio_of` between two levels of evidence, one per case, into one value
    (claims/level_difference.py). `x` is the form of the claim's `x` that `model` takes. `scaled_by_ranks` divides a
    ratio by the ratio of ranks. `clocked` marks shares and ratios within a launch that come from clocks; for times and
    rates the unit shows it. `noise_of`: of a block or a
    pair of launches, the metrics of single launches whose noise floor counts, the first that a program has. `noise`:
    how the floor enters the value (claims/beyond_floor.py). `own_count` marks what our own code counts, and identities
    of it: entries with it are checks, since it says nothing about the world. `moves_one_way`: in which cases it is a
    rate of bytes that move from one rank to another, so that one copy of memory, or one stream over loopback, bounds
    it. `link_directions`: a rate of bytes through one node's link, in so many directions. `flop_per_sample`: a rate of
    samples that cost the cores so much each (None: nothing). `doc`: the page's text, else the function's docstring.
    `crowded`: what a machine does while its cores are busy, so that launches with more threads than cores count too.
    `made_up` makes a launch with a wanted value; `range`: what launches have (None: 0 to 1 for shares, else from 0).
    `same`: of a pair, the fields of the case that both launches share (None: those of one training).
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
    scaled_by_ranks: bool = False
    clocked: bool = False
    noise_of: tuple[str, ...] = ()
    noise: HowNoiseEnters = "factor"
    own_count: bool = False
    crowded: bool = False
    moves_one_way: Callable[[AnyCase], bool] | None = None
    link_directions: int = 0
    flop_per_sample: Callable[[AnyCase], float | None] | None = None
    doc: str = ""
    made_up: MakeUp | None = None
    range: tuple[float, float] | None = None
    same: tuple[str, ...] | None = None

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
        return f"# {self.name}\n\n{head}\n\n{text}\n"


def _size(column: str) -> PerSize:
    return partial(_at_size, column=column)


def _at_size(record: Record, samples: pd.DataFrame, nbytes: int, column: str) -> float | None:
    return metrics_sizes.at_size(record, samples, column, nbytes)


def _always(case: AnyCase) -> bool:
    return True


def _split(name: str) -> PerLaunch:
    return partial(metrics_split.split_metric, name)


_PER_SIZE: tuple[tuple[str, str, Direction, str], ...] = (
    ("transfer_latency", "s", "lower", "time_s"),
    ("transfer_bandwidth", "GB/s", "higher", "algbw_gbs"),
    ("collective_latency", "s", "lower", "time_s"),
    ("algbw", "GB/s", "higher", "algbw_gbs"),
    ("busbw", "GB/s", "higher", "busbw_gbs"),
    ("first_call_s", "s", "lower", "first_s"),
)
_ALL = (
    Metric(
        "throughput",
        "samples/s",
        "higher",
        launch=metrics_train.throughput,
        flop_per_sample=metrics_train.train_flop,
        made_up=metrics_train.made_up_throughput,
    ),
    Metric(
        "forward_throughput",
        "samples/s",
        "higher",
        launch=metrics_train.forward_throughput,
        flop_per_sample=metrics_train.forward_flop,
        made_up=metrics_train.made_up_forward_throughput,
    ),
    Metric("step_s", "s", "lower", launch=metrics_train.step_s, made_up=lasting("step")),
    Metric("program_s", "s", "lower", launch=metrics_programs.program_s, made_up=lasting("step")),
    *(
        Metric(
            f"{part}_s",
            "s",
            "lower",
            launch=_split(f"{part}_s"),
            doc=metrics_split.PAGES[f"{part}_s"],
            made_up=metrics_split.making(f"{part}_s"),
        )
        for part in (*metrics_split.PARTS, "exposed_communication")
    ),
    Metric(
        "unexplained_share",
        "fraction",
        "lower",
        launch=_split("unexplained_share"),
        clocked=True,
        made_up=metrics_split.making("unexplained_share"),
        doc="""
        unexplained_share = other_s / mean step

        The share of a step that no recorded event explains. If it is above 0.05, the launch's page and the table of
        parts flag the split. In that case the other parts are known no more accurately than this share.
        """,
    ),
    Metric(
        "rank_spread",
        "fraction",
        "lower",
        launch=stragglers.rank_spread,
        clocked=True,
        made_up=stragglers.made_up_spread,
        range=(0, math.inf),
    ),
    Metric(
        "first_step_s",
        "s",
        "lower",
        launch=metrics_train.first_step_s,
        made_up=metrics_train.made_up_first_step,
        range=(-math.inf, math.inf),
    ),
    Metric(
        "first_exchange_s",
        "s",
        "lower",
        launch=metrics_train.first_exchange_s,
        made_up=metrics_train.made_up_first_exchange,
        range=(-math.inf, math.inf),
    ),
    Metric("final_loss", "nat", "lower", launch=metrics_train.final_loss, made_up=metrics_train.made_up_loss),
    Metric(
        "test_accuracy",
        "fraction",
        "higher",
        launch=metrics_train.test_accuracy,
        made_up=metrics_train.made_up_accuracy,
    ),
    Metric("staleness", "updates", "lower", launch=metrics_replicas.staleness, made_up=reporting("staleness")),
    Metric("staleness_p95", "updates", "lower", launch=metrics_replicas.staleness_p95, made_up=reporting("staleness")),
    Metric(
        "consensus_distance",
        "fraction",
        "lower",
        launch=metrics_replicas.consensus_distance,
        made_up=reporting("consensus_distance"),
        range=(0.0, math.inf),
    ),
    Metric("test_loss", "nat", "lower", launch=metrics_replicas.test_loss, made_up=reporting("test_loss")),
    Metric(
        "control_messages",
        "messages",
        "lower",
        launch=metrics_replicas.control_messages,
        made_up=metrics_replicas.made_up_per_step("control"),
        own_count=True,
    ),
    Metric(
        "model_bytes_per_step",
        "B",
        "lower",
        launch=metrics_replicas.model_bytes_per_step,
        made_up=metrics_replicas.made_up_per_step("send"),
        own_count=True,
    ),
    Metric(
        "dropped_share",
        "fraction",
        "lower",
        launch=metrics_replicas.dropped_share,
        made_up=metrics_replicas.made_up_dropped,
    ),
    Metric(
        "barrier_share",
        "fraction",
        "lower",
        launch=metrics_replicas.barrier_share,
        made_up=metrics_replicas.made_up_barrier,
        clocked=True,
    ),
    Metric(
        "samples_to_quality",
        "samples",
        "lower",
        launch=metrics_replicas.samples_to_quality,
        made_up=metrics_replicas.made_up_samples,
    ),
    Metric("time_to_quality", "s", "lower", launch=metrics_quality.time_to_quality, made_up=metrics_quality.made_up),
    Metric(
        "bytes_per_rank_ratio",
        "1",
        None,
        launch=metrics_sizes.bytes_per_rank_ratio,
        own_count=True,
        made_up=metrics_sizes.made_up_bytes,
    ),
    Metric("wire_bytes_ratio", "1", None, launch=metrics_wire.wire_bytes_ratio, made_up=metrics_wire.made_up),
    Metric("model_size", "MiB", None, model=metrics_networks.model_size, x=metrics_networks.OfNetwork),
    Metric("tensor_count", "count", None, model=metrics_networks.tensor_count, x=metrics_networks.OfNetwork),
    *(
        Metric(
            name,
            unit,
            direction,
            size=_size(column),
            made_up=metrics_sizes.making(column),
            moves_one_way=_always if name == "transfer_bandwidth" else None,
            doc=PAGES[name],
        )
        for name, unit, direction, column in _PER_SIZE
    ),
    Metric("speedup", "x", "higher", ratio_of="throughput", doc=metrics_ratios.PAGES["speedup"]),
    Metric("program_ratio", "x", None, ratio_of="program_s", doc=metrics_ratios.PAGES["program_ratio"]),
    Metric(
        "parallel_efficiency",
        "fraction",
        "higher",
        ratio_of="throughput",
        scaled_by_ranks=True,
        doc=metrics_ratios.PAGES["parallel_efficiency"],
    ),
    Metric(
        "level_error",
        "fraction",
        "lower",
        ratio_of="throughput",
        apart=median,
        noise="added",
        doc=metrics_ratios.PAGES["level_error"],
    ),
    Metric(
        "largest_level_error",
        "fraction",
        "lower",
        ratio_of="throughput",
        apart=max,
        noise="added",
        doc=metrics_ratios.PAGES["largest_level_error"],
    ),
    Metric(
        "max_parameter_difference",
        "1",
        "lower",
        pair=metrics_pairs.max_parameter_difference,
        made_up=metrics_pairs.made_up,
    ),
    Metric(
        "max_loss_difference",
        "1",
        "lower",
        pair=metrics_pairs.max_loss_difference,
        made_up=metrics_pairs.made_up,
    ),
    Metric(
        "training_difference",
        "1",
        "lower",
        pair=metrics_pairs.training_difference,
        made_up=metrics_pairs.made_up,
    ),
    Metric(
        "same_convergence", "bool", "higher", pair=metrics_pairs.same_convergence, made_up=metrics_pairs.made_up_same
    ),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
PER_LAUNCH: dict[str, PerLaunch] = {metric.name: metric.launch for metric in _ALL if metric.launch is not None}
"""Columns of the run table: one number or None per launch, from its record and samples."""
