"""Gains in throughput of a training and in time of a mini-batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_train import throughput
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase

from .durations import median_s


def largest_gain(launches: Sequence[Launch], base: str, percent: bool) -> float | None:
    """Largest ratio in one repetition, over models and batch sizes, of training throughput by zero copy to that of
    another arm."""
    throughputs: dict[tuple[Any, ...], dict[str, float]] = {}
    for launch in launches:
        case, rate = launch.record.case, throughput(launch.record, launch.samples)
        if isinstance(case, TrainCase) and rate:
            throughputs.setdefault(
                (case.workload, case.workload_options.width, case.workload_options.image_side, case.minibatch), {}
            )[case.arm] = rate
    ratios = [rates["zero_copy"] / rates[base] for rates in throughputs.values() if rates.keys() >= {"zero_copy", base}]
    if not ratios:
        return None
    return 100 * (max(ratios) - 1) if percent else max(ratios)


def throughput_gain(launch: Launch, base: Launch) -> float | None:
    """By how many % the launch's training throughput is above the base's.

    throughput_gain = 100 * (throughput of the launch / throughput of the base - 1)

    [throughput](throughput.md) of launches paired by repetition. 169 % more is 2.69 times as much, not 1.69 times.
    """
    rate, base_rate = throughput(launch.record, launch.samples), throughput(base.record, base.samples)
    return 100 * (rate / base_rate - 1) if rate and base_rate else None


def minibatch_gain(record: Record, samples: pd.DataFrame, over: str) -> float | None:
    """Mini-batch time by another mechanism over that by zero copy, in the same launch."""
    ours, theirs = median_s(samples, "minibatch_zero_copy"), median_s(samples, f"minibatch_{over}")
    return theirs / ours if ours and theirs else None


METRICS = [
    Metric("throughput_gain", "%", "higher", pair=throughput_gain, clocked=True),
    Metric(
        "largest_training_speedup",
        "x",
        "higher",
        block=partial(largest_gain, base="tensorflow_grpc", percent=False),
        clocked=True,
        doc="""
        largest_training_speedup = max over models and batch sizes of (throughput by zero copy / throughput by
        TensorFlow's own runtime)

        One number per repetition, of all its launches together: "up to" in the paper's words. A maximum of noisy
        ratios is biased upwards, the more the more models and batch sizes there are: the table of the experiment shows
        all of them. The unit of throughput is samples per second, the framework differs (PyTorch by zero copy): see
        the claim's deviations.
        """,
    ),
    Metric(
        "largest_throughput_gain",
        "%",
        "higher",
        block=partial(largest_gain, base="rpc", percent=True),
        clocked=True,
        doc="""
        largest_throughput_gain = 100 * (max over models and batch sizes of (throughput by zero copy / throughput by
        RPC over the same device) - 1)

        One number per repetition, as [largest_training_speedup](largest_training_speedup.md). Both arms are the same
        framework, strategy and device. 169 % is 2.69 times as much.
        """,
    ),
    Metric(
        "gain_over_rpc",
        "x",
        "higher",
        launch=partial(minibatch_gain, over="rpc"),
        clocked=True,
        doc="""
        gain_over_rpc = mini-batch time by RPC over the device / mini-batch time by zero copy, in the same launch

        Medians over steps. Mechanisms take turns in random order within a launch, so both see the same machine.
        Compute is slept for in both: where it is long beside the exchange, the gain is near 1.
        """,
    ),
    Metric(
        "gain_over_copy",
        "x",
        "higher",
        launch=partial(minibatch_gain, over="copy"),
        clocked=True,
        doc="""
        gain_over_copy = mini-batch time through registered buffers / mini-batch time by zero copy, in the same launch

        As [gain_over_rpc](gain_over_rpc.md); what is left between both is two copies per tensor.
        """,
    ),
]
