"""The harness's metrics by name, with unit and direction; each has a page in docs/metrics/."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pandas as pd

from scaleproof.claims import metrics_pairs, metrics_quality, metrics_sizes, metrics_split, metrics_train, stragglers
from scaleproof.claims.claim_form import PublishedRow
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics_sizes import by_size
from scaleproof.core.record_schema import Record
from scaleproof.stats.intervals import median

__all__ = ["METRICS", "PER_LAUNCH", "Metric", "by_size"]

Direction = Literal["higher", "lower"] | None
PerLaunch = Callable[[Record, pd.DataFrame], float | None]
PerSize = Callable[[Record, pd.DataFrame, int], float | None]
PerPair = Callable[[Launch, Launch], float | None]
PerBlock = Callable[[Sequence[Launch]], float | None]
"""Of the selected launches of one repetition: several arms give one value."""
Model = Callable[[Mapping[str, Any], Mapping[str, PublishedRow]], float]
"""Arithmetic on what the claim's `x` says and on the paper's rows by id; no launches."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A named estimator. Exactly one of the functions is set.

    `apart`: of how far `ratio_of` is apart at two levels of evidence, which of the |shares| over cases
    (claims/level_difference.py). `scaled_by_ranks` divides a ratio by the ratio of ranks. `clocked`: for shares and
    ratios within a launch that come from clocks; units of time and rates say so themselves. `doc`: the text of its page
    where its function has none of its own.
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
    apart: Callable[[Sequence[float]], float] | None = None
    scaled_by_ranks: bool = False
    clocked: bool = False
    doc: str = ""

    @property
    def timing(self) -> bool:
        """Whether its values come from clocks: then the machine's noise floor counts, and oversubscribed launches do
        not."""
        if self.ratio_of:
            return METRICS[self.ratio_of].timing
        return self.clocked or self.unit == "s" or self.unit.endswith("/s")

    def by_size(self, record: Record, samples: pd.DataFrame) -> dict[int, float | None]:
        """Its values at the message sizes of a launch's case; empty when it is none per size."""
        if self.size is None:
            return {}
        return {nbytes: self.size(record, samples, nbytes) for nbytes in getattr(record.case, "sizes", ())}

    @property
    def page(self) -> str:
        """Where its page is."""
        return f"docs/metrics/{self.name}.md"

    @property
    def page_text(self) -> str:
        """Its page as Markdown: unit, which way is better, and `doc` or its function's docstring."""
        function = self.launch or self.size or self.pair or self.block or self.model
        text = inspect.cleandoc(self.doc or (function.__doc__ if function else "") or "")
        unit = f"{self.unit} (10^9 bytes)" if self.unit == "GB/s" else self.unit
        head = f"| | |\n|---|---|\n| unit | {unit} |\n| better | {self.direction or 'neither'} |"
        return f"# {self.name}\n\n{head}\n\n{text}\n"


def _size(column: str) -> PerSize:
    return partial(_at_size, column=column)


def _at_size(record: Record, samples: pd.DataFrame, nbytes: int, column: str) -> float | None:
    return metrics_sizes.at_size(record, samples, column, nbytes)


def _split(name: str) -> PerLaunch:
    return partial(metrics_split.split_metric, name)


_ALL = (
    Metric("throughput", "samples/s", "higher", launch=metrics_train.throughput),
    Metric("forward_throughput", "samples/s", "higher", launch=metrics_train.forward_throughput),
    Metric("step_s", "s", "lower", launch=metrics_train.step_s),
    *(
        Metric(f"{part}_s", "s", "lower", launch=_split(f"{part}_s"), doc=metrics_split.PAGES[f"{part}_s"])
        for part in (*metrics_split.PARTS, "exposed_communication")
    ),
    Metric(
        "unexplained_share",
        "fraction",
        "lower",
        launch=_split("unexplained_share"),
        clocked=True,
        doc="""
        unexplained_share = other_s / mean step

        What no event of a step explains. Above 0.05 the split is flagged on the launch's page and in the table of
        parts: then do not read the other parts to better than that.
        """,
    ),
    Metric("rank_spread", "fraction", "lower", launch=stragglers.rank_spread, clocked=True),
    Metric("first_step_s", "s", "lower", launch=metrics_train.first_step_s),
    Metric("first_exchange_s", "s", "lower", launch=metrics_train.first_exchange_s),
    Metric("final_loss", "nat", "lower", launch=metrics_train.final_loss),
    Metric("test_accuracy", "fraction", "higher", launch=metrics_train.test_accuracy),
    Metric("time_to_quality", "s", "lower", launch=metrics_quality.time_to_quality),
    Metric("bytes_per_rank_ratio", "1", None, launch=metrics_sizes.bytes_per_rank_ratio),
    Metric(
        "transfer_latency",
        "s",
        "lower",
        size=_size("time_s"),
        doc="""
        transfer_latency(n) = median over iterations of (round trip of n bytes) / 2

        One way of a ping-pong between rank 0 and rank 1, timed on rank 0. The echo is verified before and after,
        outside the timed calls. Half a round trip is the latency of one way only where both ways are alike.
        """,
    ),
    Metric(
        "transfer_bandwidth",
        "GB/s",
        "higher",
        size=_size("algbw_gbs"),
        doc="""
        transfer_bandwidth(n) = n / transfer_latency(n)

        May exceed the link: on one machine there is no link, and a message that fits the processor's caches moves
        faster than memory does. Compare with the memory-copy bandwidth of the same run.
        """,
    ),
    Metric(
        "collective_latency",
        "s",
        "lower",
        size=_size("time_s"),
        doc="""
        collective_latency(n) = median over calls of (the slowest rank's call on n bytes)

        Every timed call follows a barrier, so that all ranks start together up to the barrier's own skew. n is the
        whole array, as nccl-tests counts it. nccl-tests averages over ranks by default; we take the slowest, because a
        synchronous step waits for it.
        """,
    ),
    Metric(
        "algbw",
        "GB/s",
        "higher",
        size=_size("algbw_gbs"),
        doc="""
        algbw(n) = n / collective_latency(n)

        What a caller gets: bytes of the array per second. It falls with the number of ranks even on a perfect network;
        use [busbw](busbw.md) to compare with a link. Source: NVIDIA nccl-tests, doc/PERFORMANCE.md.
        """,
    ),
    Metric(
        "busbw",
        "GB/s",
        "higher",
        size=_size("busbw_gbs"),
        doc="""
        busbw = algbw x { all_reduce 2(N-1)/N;  reduce_scatter, all_gather (N-1)/N;  broadcast 1 }

        Bytes that the busiest link must carry per second under an optimal algorithm; comparable with the link's rate
        at any N. Source: NVIDIA nccl-tests, doc/PERFORMANCE.md.

        May exceed the link: when ranks share memory or caches, when the network reduces in its switches, when the
        topology has more links per rank than one. An algorithm that sends more than the optimum (a tree) moves more
        bytes than busbw says.
        """,
    ),
    Metric(
        "first_call_s",
        "s",
        "lower",
        size=_size("first_s"),
        doc="""
        first_call_s = first call of a message size, on the rank where it took longest; for `transfer` half of the
        first round trip

        The call that is checked before the warm-up: it touches memory, registers buffers or negotiates names, and is
        in no other number. Ranks meet at a barrier before a collective one. Compare with
        [collective_latency](collective_latency.md) or [transfer_latency](transfer_latency.md) of the same size: a
        transport may be fast only once it has seen a buffer. There is one such call per size and launch, so look at
        several launches.
        """,
    ),
    Metric(
        "speedup",
        "x",
        "higher",
        ratio_of="throughput",
        doc="""
        speedup = median throughput of the cases / median throughput of the base cases

        Ratio of medians over launches, never a mean of ratios. The base is named in every claim with its absolute
        value; threads per rank are equal on both sides. Suites of this project keep the global minibatch (strong
        scaling); with a minibatch in proportion to the ranks (weak scaling) the formula is the same. A base that uses
        the same number of cores in one process stands beside it where a suite has such an arm. Interval: percentile
        bootstrap over launches, by blocks where both sides ran in the same blocks. Above the number of ranks
        (super-linear) look for caches, or for a base that was not the best single process.
        """,
    ),
    Metric(
        "parallel_efficiency",
        "fraction",
        "higher",
        ratio_of="throughput",
        scaled_by_ranks=True,
        doc="""
        parallel_efficiency = speedup / (ranks of the cases / ranks of the base)

        1 is the ideal line, in strong and in weak scaling alike, since throughput counts samples. Which base and which
        of the two it is stands beside the number. What the rest was lost to: docs/decomposition.md. Interval as for
        [speedup](speedup.md), divided by the same number.
        """,
    ),
    Metric(
        "level_error",
        "fraction",
        "lower",
        ratio_of="throughput",
        apart=median,
        doc="""
        level_error = median over cases of | throughput at one level of evidence / throughput at another - 1 |

        Over every case that both levels have: cases that differ only in what says how they were run (fabric, nodes,
        compute, dilation, shrink, steps, warm-up, costs, names). Each side is the median over launches. The interval
        is that of the median over cases (order statistics); `reason` names the case that is furthest apart.
        """,
    ),
    Metric(
        "largest_level_error",
        "fraction",
        "lower",
        ratio_of="throughput",
        apart=max,
        doc="""
        largest_level_error = largest over cases of | throughput at one level of evidence / throughput at another - 1 |

        See [level_error](level_error.md). It is the largest of what was looked at, no estimate of what a further case
        would show. It has no interval: the largest of medians that are uncertain themselves.
        """,
    ),
    Metric("max_parameter_difference", "1", "lower", pair=metrics_pairs.max_parameter_difference),
    Metric("max_loss_difference", "1", "lower", pair=metrics_pairs.max_loss_difference),
    Metric("training_difference", "1", "lower", pair=metrics_pairs.training_difference),
    Metric("same_convergence", "bool", "higher", pair=metrics_pairs.same_convergence),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
PER_LAUNCH: dict[str, PerLaunch] = {metric.name: metric.launch for metric in _ALL if metric.launch is not None}
"""Columns of the run table: one number or None per launch, from its record and samples."""
