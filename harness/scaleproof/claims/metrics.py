"""Every metric by name, with its unit and which way is better; each has a page in docs/metrics/."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from scaleproof.claims import metrics_pairs, metrics_quality, metrics_sizes, metrics_split, metrics_train, stragglers
from scaleproof.claims.claim_form import PublishedRow
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics_sizes import by_size
from scaleproof.core.record_schema import Record
from scaleproof.record.digest import rooms_digest
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import shown
from scaleproof.stats.intervals import median

__all__ = ["METRICS", "PER_LAUNCH", "Metric", "by_size", "suite_metrics", "suite_metrics_version"]

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
    """A named estimator. Exactly one of the functions is set; `scaled_by_ranks` divides a ratio by the ratio of ranks."""

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
    """Of how far `ratio_of` is apart at two levels of evidence: which of the |shares| over cases (claims/level_difference.py)."""
    scaled_by_ranks: bool = False
    clocked: bool = False
    """For shares and ratios within a launch that come from clocks; units of time and rates say so themselves."""

    @property
    def timing(self) -> bool:
        """Whether its values come from clocks: then the machine's noise floor counts, and oversubscribed launches do
        not."""
        return (
            METRICS[self.ratio_of].timing
            if self.ratio_of
            else self.clocked or self.unit == "s" or self.unit.endswith("/s")
        )

    def by_size(self, record: Record, samples: pd.DataFrame) -> dict[int, float | None]:
        """Its values at the message sizes of a launch's case; empty when it is none per size."""
        return (
            {nbytes: self.size(record, samples, nbytes) for nbytes in getattr(record.case, "sizes", ())}
            if self.size
            else {}
        )

    @property
    def page(self) -> str:
        """Where its formula, unit and pitfalls are written down."""
        return f"docs/metrics/{self.name}.md"


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
        Metric(f"{part}_s", "s", "lower", launch=_split(f"{part}_s"))
        for part in (*metrics_split.PARTS, "exposed_communication")
    ),
    Metric("unexplained_share", "fraction", "lower", launch=_split("unexplained_share"), clocked=True),
    Metric("rank_spread", "fraction", "lower", launch=stragglers.rank_spread, clocked=True),
    Metric("first_step_s", "s", "lower", launch=metrics_train.first_step_s),
    Metric("first_exchange_s", "s", "lower", launch=metrics_train.first_exchange_s),
    Metric("final_loss", "nat", "lower", launch=metrics_train.final_loss),
    Metric("test_accuracy", "fraction", "higher", launch=metrics_train.test_accuracy),
    Metric("time_to_quality", "s", "lower", launch=metrics_quality.time_to_quality),
    Metric("bytes_per_rank_ratio", "1", None, launch=metrics_sizes.bytes_per_rank_ratio),
    Metric("transfer_latency", "s", "lower", size=_size("time_s")),
    Metric("transfer_bandwidth", "GB/s", "higher", size=_size("algbw_gbs")),
    Metric("collective_latency", "s", "lower", size=_size("time_s")),
    Metric("algbw", "GB/s", "higher", size=_size("algbw_gbs")),
    Metric("busbw", "GB/s", "higher", size=_size("busbw_gbs")),
    Metric("first_call_s", "s", "lower", size=_size("first_s")),
    Metric("speedup", "x", "higher", ratio_of="throughput"),
    Metric("parallel_efficiency", "fraction", "higher", ratio_of="throughput", scaled_by_ranks=True),
    Metric("level_error", "fraction", "lower", ratio_of="throughput", apart=median),
    Metric("largest_level_error", "fraction", "lower", ratio_of="throughput", apart=max),
    Metric("max_parameter_difference", "1", "lower", pair=metrics_pairs.max_parameter_difference),
    Metric("max_loss_difference", "1", "lower", pair=metrics_pairs.max_loss_difference),
    Metric("training_difference", "1", "lower", pair=metrics_pairs.training_difference),
    Metric("same_convergence", "bool", "higher", pair=metrics_pairs.same_convergence),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
PER_LAUNCH: dict[str, PerLaunch] = {metric.name: metric.launch for metric in _ALL if metric.launch is not None}
"""Columns of the run table: one number or None per launch, from its record and samples."""


def suite_metrics(folder: Path) -> dict[str, Metric]:
    """METRICS and those that the suite's own models.py adds (`METRICS`, a list of Metric); SpecError when it redefines
    one or cannot be imported."""
    path = folder / "models.py"
    if not path.exists():
        return METRICS
    spec = importlib.util.spec_from_file_location(f"scaleproof_suite_{folder.name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SpecError(f"{shown(path)}: {type(error).__name__}: {error}") from error
    if not isinstance(getattr(module, "METRICS", None), list):
        raise SpecError(f"{shown(path)}: has no list METRICS of scaleproof.claims.metrics.Metric")
    own = {metric.name: metric for metric in module.METRICS}
    if twice := sorted(own.keys() & METRICS.keys()):
        raise SpecError(f"{shown(path)}: metric {twice[0]!r} is already one of the harness's; give it another name")
    return {**METRICS, **own}


def suite_metrics_version(folder: Path) -> str:
    """Digest of all code that the values of `suite_metrics` follow from: the rooms below claims that read records, and
    the suite's own."""
    total = hashlib.sha256(rooms_digest("spec", "stats", "record", "claims").encode())
    for path in sorted(folder.rglob("*.py")):
        total.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return f"{folder.name}-{total.hexdigest()[:16]}"
