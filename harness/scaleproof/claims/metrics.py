"""The harness's metrics by name, with unit and direction; each has a page in docs/metrics/."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd

from scaleproof.claims import (
    metrics_faults,
    metrics_networks,
    metrics_pairs,
    metrics_pipelines,
    metrics_programs,
    metrics_ratios,
    metrics_sizes,
    metrics_split,
    metrics_train,
    metrics_wire,
    stragglers,
)
from scaleproof.claims.made_up import lasting, reporting, with_facts
from scaleproof.claims.metric import METRICS, Direction, Metric, PerBlock, PerLaunch, PerSize
from scaleproof.claims.metrics_sizes import PAGES, by_size
from scaleproof.claims.registered_learning import OF_LEARNING
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase
from scaleproof.stats.intervals import median

__all__ = ["METRICS", "PER_LAUNCH", "Direction", "Metric", "PerBlock", "by_size"]


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
    Metric(
        "loss_difference",
        "1",
        "lower",
        launch=metrics_programs.loss_difference,
        made_up=reporting("loss_difference"),
    ),
    *(
        Metric(
            f"{part}_s",
            "s",
            "lower",
            launch=_split(f"{part}_s"),
            doc=metrics_split.PAGES[f"{part}_s"],
            made_up=metrics_split.making(f"{part}_s"),
        )
        for part in (*metrics_split.PARTS, *metrics_split.OF_REPLICAS, "exposed_communication")
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
    *OF_LEARNING,
    Metric(
        "time_to_recover",
        "s",
        "lower",
        launch=metrics_faults.time_to_recover,
        made_up=metrics_faults.made_up_recovery,
        instead=metrics_faults.not_recovered,
    ),
    Metric(
        "time_to_replace",
        "s",
        "lower",
        launch=metrics_faults.time_to_replace,
        made_up=metrics_faults.made_up_replacement,
    ),
    Metric(
        "samples_lost",
        "samples",
        "lower",
        launch=metrics_faults.samples_lost,
        made_up=metrics_faults.made_up_loss,
        clocked=True,
    ),
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
    Metric(
        "resident_peak",
        "MiB",
        "lower",
        launch=metrics_pipelines.resident_peak,
        made_up=with_facts(lambda value, _: {"peak_memory_mib": value}),
    ),
    Metric("resident_ratio", "x", "lower", ratio_of="resident_peak", doc=metrics_ratios.PAGES["resident_ratio"]),
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
        "pipeline_idle",
        "fraction",
        "lower",
        launch=metrics_pipelines.pipeline_idle,
        clocked=True,
        made_up=metrics_pipelines.made_up_idle,
    ),
    Metric(
        "idle_level_points",
        "fraction",
        "lower",
        ratio_of="pipeline_idle",
        apart=median,
        points=True,
        noise="added",
        doc=metrics_pipelines.IDLE_LEVEL_POINTS,
    ),
    Metric(
        "parameter_difference",
        "1",
        "lower",
        launch=metrics_pipelines.parameter_difference,
        made_up=metrics_pipelines.made_up_difference,
    ),
    *(
        Metric(
            f"{which}_activations",
            "micro-batches",
            "lower",
            launch=function,
            own_count=True,
            made_up=metrics_pipelines.made_up_activations,
        )
        for which, function in (
            ("most", metrics_pipelines.most_activations),
            ("fewest", metrics_pipelines.fewest_activations),
        )
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
METRICS |= {metric.name: metric for metric in _ALL}
PER_LAUNCH: dict[str, PerLaunch] = {metric.name: metric.launch for metric in _ALL if metric.launch is not None}
"""Columns of the run table: one number or None per launch, from its record and samples."""
