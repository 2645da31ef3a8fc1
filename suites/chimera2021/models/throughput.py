"""Throughput of this paper's schemes on Piz Daint, predicted from layer times of the authors and one published rate."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Literal

from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Count, Published, RowId
from scaleproof.claims.metrics import Metric
from scaleproof.pipelines.configurations import Machine, setting_of
from scaleproof.pipelines.throughput import Line, Setting, calibrated_beta, iteration_s
from scaleproof.pipelines.timing import GradientSync

from .arguments import NetworkName, Scheme, Stages, network

PROFILED_BATCH = 8
"""Samples of the authors' layer times, of BERT-large's layer with 128 tokens."""
LAYER = "layer2."
"""Of Bert-48: one layer with the shape of BERT-large's."""
GPU_BYTES = 16e9
"""Of a P100."""


class Configuration(Arguments):
    """A scheme on nodes with a GPU each."""

    workload: NetworkName = Field(description="The network.")
    gpu: Literal["p100", "v100"] = Field("p100", description="Whose layer times.")
    nodes: Count = Field(description="P = W D.")
    minibatch: Count = Field(description="Samples of an iteration, of all nodes.")
    scheme: Scheme
    stages: Stages
    samples: Count = Field(description="B, samples of a micro-batch.")
    recompute: bool = Field(False, description="Whether activations are recomputed.")
    pairs: Count = Field(1, description="f, pairs of pipelines in opposite directions.")
    gradient_sync: GradientSync = Field(
        "eager", description="When replicas of a stage begin to add up gradients, as the option of strategy pipeline."
    )


class Compared(Arguments):
    """Two configurations, by the rows that have them."""

    faster: Configuration = Field(description="The numerator.")
    slower: Configuration = Field(description="The denominator.")


class Grown(Arguments):
    """The same scheme on more nodes, each of them with as many samples."""

    few: Configuration = Field(description="On the fewer nodes.")
    many: Configuration = Field(description="On the more nodes.")


class Calibration(Arguments):
    """Rows that are compared, and the one that is not."""

    predicted: dict[RowId, Configuration] = Field(description="By row of published throughput.")


def predicted_throughput(x: Configuration, rows: Published) -> float:
    """Predicted throughput in sequences/s (suite chimera2021).

    throughput = minibatch / time of an iteration, by the list schedule of all passes

    A stage's passes take their multiply-accumulates times what one takes in the authors' time of BERT-large's layer
    (`prof/`, 8 samples of 128 tokens), whatever the size of a micro-batch. A message costs beta a byte, an all-reduce
    2 (r - 1) / r of it; beta is such that DAPPLE with GPT-2 on 2,048 nodes has its published throughput, the one row
    that is not judged. Replicas of a stage add up its gradients after its last backward pass (`gradient_sync: eager`),
    there only before a gap of the worker (`eager_opt`), or after all passes (`late`); passes are not slower meanwhile.
    Schemes without a flush add up gradients before each update, with nothing beside it. With V100 messages take no
    time, since no throughput is known to calibrate with. Arithmetic, no launches.
    """
    return x.minibatch / iteration_s(_setting(x, rows, line_of(x, rows)))


def predicted_gain(x: Compared, rows: Published) -> float:
    """predicted_gain = predicted throughput of one configuration / of another

    See [predicted_throughput](predicted_throughput.md). Arithmetic, no launches.
    """
    return predicted_throughput(x.faster, rows) / predicted_throughput(x.slower, rows)


def predicted_weak_scaling(x: Grown, rows: Published) -> float:
    """predicted_weak_scaling = 100 x (throughput on many nodes / many) / (throughput on few nodes / few), in % (suite
    chimera2021)

    See [predicted_throughput](predicted_throughput.md). Arithmetic, no launches.
    """
    many, few = (predicted_throughput(each, rows) / each.nodes for each in (x.many, x.few))
    return 100 * many / few


def prediction_error(x: Calibration, rows: Published) -> float:
    """Largest error of a predicted throughput, in %, over published rows that it is not calibrated with.

    prediction_error = 100 x max |predicted / published - 1|

    See [predicted_throughput](predicted_throughput.md). Arithmetic, no launches.
    """
    return 100 * max(
        abs(predicted_throughput(each, rows) / rows.positive(name) - 1) for name, each in x.predicted.items()
    )


CALIBRATED_WITH = "chimera2021.fig15.2048.dapple"
"""Named before anything was predicted."""
DAPPLE_2048 = Configuration(
    workload="gpt2_64", nodes=2048, minibatch=2048, scheme="dapple", stages=16, samples=1, recompute=True
)


def line_of(x: Configuration, rows: Published) -> Line:
    """What a message costs; with V100 nothing."""
    if x.gpu == "v100":
        return Line(0.0, 0.0)
    setting = _setting(DAPPLE_2048, rows, Line(0.0, 0.0))
    return Line(0.0, calibrated_beta(setting, DAPPLE_2048.minibatch / rows.positive(CALIBRATED_WITH)))


def machine_of(gpu: str, nodes: int, memory: float, line: Line, rows: Published) -> Machine:
    """So many nodes with a GPU each."""
    forward, backward = (_seconds_of_mac(gpu, which, rows) for which in ("f", "b"))
    return Machine(nodes, memory, forward, backward, line)


def _setting(x: Configuration, rows: Published, line: Line) -> Setting:
    machine = machine_of(x.gpu, x.nodes, GPU_BYTES, line, rows)
    setting = setting_of(
        network(x.workload), x.scheme, x.minibatch, machine, x.stages, x.samples, x.recompute, x.pairs
    )  # fmt: skip
    return replace(setting, gradient_sync=x.gradient_sync)


def _seconds_of_mac(gpu: str, which: str, rows: Published) -> float:
    """Of a pass, by the authors' time of a layer, ms."""
    layers = [layer for layer in network("bert48").layers if layer.name.startswith(LAYER)]
    mac = PROFILED_BATCH * sum(layer.mac for layer in layers)
    return rows.positive(f"chimera2021.prof.{gpu}.bertlarge.b8.{which}") / 1e3 / mac


def order_kept(x: Calibration, rows: Published) -> float:
    """Share of pairs of published rows of which the predicted throughputs are in the published order (suite
    chimera2021).

    See [predicted_throughput](predicted_throughput.md). Arithmetic, no launches.
    """
    pairs = list(combinations(x.predicted.items(), 2))
    kept = [
        (rows.positive(one) - rows.positive(other))
        * (predicted_throughput(ours, rows) - predicted_throughput(theirs, rows))
        > 0
        for (one, ours), (other, theirs) in pairs
    ]
    return sum(kept) / len(pairs)


def ratio_error(x: Calibration, rows: Published) -> float:
    """Largest error of a predicted ratio, in %: of the first configuration's throughput over that of each other one
    (suite chimera2021).

    ratio_error = 100 x max |predicted ratio / published ratio - 1|

    See [predicted_throughput](predicted_throughput.md). Arithmetic, no launches.
    """
    (first, ours), *others = x.predicted.items()
    predicted, published = predicted_throughput(ours, rows), rows.positive(first)
    return 100 * max(
        abs(predicted / predicted_throughput(each, rows) * rows.positive(name) / published - 1) for name, each in others
    )


METRICS = [
    Metric("order_kept", "fraction", "higher", model=order_kept, x=Calibration),
    Metric("ratio_error", "%", "lower", model=ratio_error, x=Calibration),
    Metric("predicted_throughput", "sequences/s", "higher", model=predicted_throughput, x=Configuration),
    Metric("predicted_gain", "x", "higher", model=predicted_gain, x=Compared),
    Metric("predicted_weak_scaling", "%", "higher", model=predicted_weak_scaling, x=Grown),
    Metric("prediction_error", "%", "lower", model=prediction_error, x=Calibration),
]
