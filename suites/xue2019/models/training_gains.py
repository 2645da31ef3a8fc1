"""Gains in throughput of a training and in time of a mini-batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from scaleproof.claims.finished_launch import Launch, median_duration_s, timed
from scaleproof.claims.made_up import Event, MadeUp, MakeUp, Wanted, possible, trained
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_train import throughput
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase


def largest_gain(launches: Sequence[Launch], _floor: float | None = None, *, base: str, percent: bool) -> float | None:
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


def throughput_gain(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Gain of the launch's training throughput over the base's, in %.

    throughput_gain = 100 * (throughput of the launch / throughput of the base - 1)

    The [throughput](throughput.md) is that of launches paired by repetition. A gain of 169 % means 2.69 times the
    throughput, not 1.69 times. The noise floor moves the ratio of which the value is the gain: with a floor of 5 %, a
    gain of 10 % could be one of 4.8 to 15.5 %.
    """
    rate, base_rate = throughput(launch.record, launch.samples), throughput(base.record, base.samples)
    return 100 * (rate / base_rate - 1) if rate and base_rate else None


def minibatch_gain(record: Record, samples: pd.DataFrame, over: str) -> float | None:
    """Mini-batch time by the mechanism `over` / mini-batch time by zero copy, in the same launch."""
    ours, theirs = (median_duration_s(timed(samples, f"minibatch_{mechanism}")) for mechanism in ("zero_copy", over))
    return theirs / ours if ours and theirs else None


def made_up_gain(wanted: Wanted) -> MadeUp:
    """A training that is faster by so many per cent than the base's 1000 samples/s."""
    return trained(wanted.case, 1000.0 * (1 + possible(wanted.value or 0.0, -100) / 100))


def made_up_best(percent: bool) -> MakeUp:
    """Blocks in which zero copy is as much ahead of the other arms in every model."""

    def made_up(wanted: Wanted) -> MadeUp:
        ratio = 1 + wanted.known / 100 if percent else wanted.known
        return trained(wanted.case, 1000.0 * (ratio if wanted.case.arm == "zero_copy" else 1.0))

    return made_up


def made_up_minibatches(over: str) -> MakeUp:
    """Launches whose mini-batch takes so many times as long by another mechanism."""

    def made_up(wanted: Wanted) -> MadeUp:
        ours = Event("minibatch_zero_copy", 0.0, 1.0)
        return MadeUp((ours, Event(f"minibatch_{over}", 0.0, possible(wanted.known))))

    return made_up


METRICS = [
    Metric(
        "throughput_gain",
        "%",
        "higher",
        pair=throughput_gain,
        clocked=True,
        noise_of=("throughput",),
        noise="gain",
        made_up=made_up_gain,
        range=(-100, math.inf),
    ),
    Metric(
        "largest_training_speedup",
        "x",
        "higher",
        block=partial(largest_gain, base="tensorflow_grpc", percent=False),
        made_up=made_up_best(percent=False),
        clocked=True,
        noise_of=("throughput",),
        doc="""
        largest_training_speedup = max over models and batch sizes of (throughput by zero copy / throughput by
        TensorFlow's own runtime)

        This is what the paper states as "up to". All launches of a repetition together give one number. The maximum of
        noisy ratios is biased upwards, and the bias grows with the number of models and batch sizes, so that the noise
        floor of single launches applies; the table of the experiment shows all ratios. Throughput is in samples per
        second on both sides. The frameworks differ (zero copy runs in PyTorch): see the claim's
        deviations.
        """,
    ),
    Metric(
        "largest_throughput_gain",
        "%",
        "higher",
        block=partial(largest_gain, base="rpc", percent=True),
        made_up=made_up_best(percent=True),
        range=(-100, math.inf),
        clocked=True,
        noise_of=("throughput",),
        noise="gain",
        doc="""
        largest_throughput_gain = 100 * (max over models and batch sizes of (throughput by zero copy / throughput by RPC
        over the same device) - 1)

        Each repetition gives one number, as for [largest_training_speedup](largest_training_speedup.md). Both arms use
        the same framework, strategy and device. A gain of 169 % means 2.69 times the throughput; the noise floor moves
        this ratio.
        """,
    ),
    Metric(
        "gain_over_rpc",
        "x",
        "higher",
        launch=partial(minibatch_gain, over="rpc"),
        made_up=made_up_minibatches("rpc"),
        clocked=True,
        doc="""
        gain_over_rpc = mini-batch time by RPC over the device / mini-batch time by zero copy, in the same launch

        Both times are medians over steps. The mechanisms take turns in random order within a launch, so both run under
        the same conditions of the machine. Computation is replaced by sleeping in both: where it is long compared with
        the exchange, the gain is near 1.
        """,
    ),
    Metric(
        "gain_over_copy",
        "x",
        "higher",
        launch=partial(minibatch_gain, over="copy"),
        made_up=made_up_minibatches("copy"),
        clocked=True,
        doc="""
        gain_over_copy = mini-batch time through registered buffers / mini-batch time by zero copy, in the same launch

        Measured as [gain_over_rpc](gain_over_rpc.md). The two mechanisms differ only in two copies per tensor.
        """,
    ),
]
