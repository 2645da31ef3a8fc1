"""Metrics of this paper only: schedules against its formulas, what its networks send, and the throughput of its schemes
on Piz Daint, predicted from layer times of the authors and one published rate."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from scaleproof.claims.arithmetic import Arguments, Count, Published, RowId
from scaleproof.claims.metrics import Metric
from scaleproof.pipelines.schemes import schedule_of, schemes
from scaleproof.pipelines.throughput import Line, Setting, calibrated_beta, iteration_s
from scaleproof.pipelines.timing import PassTimes, timeline
from scaleproof.spec import registry
from scaleproof.workloads.networks import Network
from scaleproof.workloads.stages import cut

ITEM = 4
"""Bytes of a float32."""
PROFILED_BATCH = 8
"""Samples of the authors' layer times, of BERT-large's layer with 128 tokens."""
LAYER = "layer2."
"""Of Bert-48: one layer with the shape of BERT-large's."""
EQUAL = PassTimes(1.0, 1.0)
"""Formulas of the paper assume that both passes take equally long."""


def _is_scheme(name: str) -> str:
    if name not in schemes():
        raise ValueError(registry.nearest(name, list(schemes())))
    return name


Scheme = Annotated[str, AfterValidator(_is_scheme), Field(description="A scheme of docs/pipelines.md.")]
Stages = Annotated[int, Field(ge=2, le=4096, description="D, stages.")]


class Grid(Arguments):
    """A formula of Table 2 or 3."""

    scheme: Scheme
    formula: Literal["one_way", "gems", "chimera", "none"] = Field(description="Which formula.")


class Slots(Arguments):
    """A schedule."""

    scheme: Scheme
    stages: Stages
    micro_batches: Count = Field(description="N, micro-batches of a group of workers.")
    pairs: Count = Field(1, description="f, pairs of pipelines in opposite directions.")


class Cut(Arguments):
    """A network cut into stages of equally many blocks."""

    workload: Literal["bert48", "gpt2_64"] = Field(description="The network.")
    stages: int = Field(ge=1, le=64, description="D; 1: the whole.")


class Sent(Arguments):
    """Micro-batches between two stages."""

    workload: Literal["bert48", "gpt2_64"] = Field(description="The network.")
    samples: Count = Field(description="B, samples of a micro-batch.")


class Configuration(Arguments):
    """A scheme on nodes with a GPU each."""

    workload: Literal["bert48", "gpt2_64"] = Field(description="The network.")
    gpu: Literal["p100", "v100"] = Field("p100", description="Whose layer times.")
    nodes: Count = Field(description="P = W D.")
    minibatch: Count = Field(description="Samples of an iteration, of all nodes.")
    scheme: Scheme
    stages: Stages
    samples: Count = Field(description="B, samples of a micro-batch.")
    recompute: bool = Field(False, description="Whether activations are recomputed.")
    pairs: Count = Field(1, description="f, pairs of pipelines in opposite directions.")


class Compared(Arguments):
    """Two configurations, by the rows that have them."""

    faster: Configuration = Field(description="The numerator.")
    slower: Configuration = Field(description="The denominator.")


class Calibration(Arguments):
    """Rows that are compared, and the one that is not."""

    predicted: dict[RowId, Configuration] = Field(description="By row of published throughput.")


def formula_gap(x: Grid, rows: Published) -> float:
    """Largest distance between the idle share of a schedule and the paper's formula.

    formula_gap = max over D = 4, 8, 16, 32 with N = D, and N = 2 D for one-way schemes, of |idle share - formula|

    Passes take equally long, messages take no time. Formulas of Table 2 (suite chimera2021). Arithmetic, no launches.
    """
    gaps = []
    for stages in (4, 8, 16, 32):
        for count in (stages, 2 * stages) if x.formula == "one_way" else (stages,):
            line = timeline(schedule_of(x.scheme, stages, count), EQUAL)
            gaps.append(abs(line.idle_share - float(_formula(x.formula, stages, count))))
    return max(gaps)


def pairs_formula_gap(x: Grid, rows: Published) -> float:
    """The same for Chimera with 2f pipelines (Table 3): f = 1, 2, 4 where it divides D / 2, N = D. Arithmetic, no
    launches (suite chimera2021)."""
    gaps = []
    for stages in (8, 16, 32):
        for pairs in (1, 2, 4):
            if stages // 2 % pairs == 0:
                idle = timeline(schedule_of(x.scheme, stages, stages, pairs), EQUAL).idle_share
                wanted = Fraction(stages - 2 * pairs, 2 * pairs * stages + stages - 2 * pairs)
                gaps.append(abs(idle - float(wanted)))
    return max(gaps)


def _formula(name: str, stages: int, count: int) -> Fraction:
    if name == "one_way":
        return Fraction(stages - 1, count + stages - 1)
    if name == "gems":
        return Fraction(stages - 1) / (stages + Fraction(1, 2))
    return Fraction(stages - 2, 2 * count + stages - 2)


def slots_idle(x: Slots, rows: Published) -> float:
    """slots_idle = 100 x idle share of the schedule, in %, where both passes take equally long and messages no time.
    Arithmetic, no launches (suite chimera2021)."""
    return 100 * timeline(schedule_of(x.scheme, x.stages, x.micro_batches, x.pairs), EQUAL).idle_share


def idle_slots(x: Slots, rows: Published) -> float:
    """Slots in which a worker does nothing, the most of any worker, where both passes take a slot. Arithmetic, no
    launches (suite chimera2021)."""
    line = timeline(schedule_of(x.scheme, x.stages, x.micro_batches, x.pairs), EQUAL)
    return max(line.makespan - sum(end - start for start, end in spans) for spans in line.spans)


def fewer_slots(x: Slots, rows: Published) -> float:
    """fewer_slots = 100 x (1 - idle slots / idle slots of dapple), in %. Arithmetic, no launches (suite
    chimera2021)."""
    return 100 * (1 - idle_slots(x, rows) / idle_slots(x.model_copy(update={"scheme": "dapple"}), rows))


def largest_gradient(x: Cut, rows: Published) -> float:
    """Parameters of the first stage, which has the embeddings: values of its all-reduce. Arithmetic, no launches (suite
    chimera2021)."""
    return float(cut(_network(x.workload), x.stages, "blocks")[0].parameters)


def activation_values(x: Sent, rows: Published) -> float:
    """Values that a micro-batch sends to the next stage: samples x positions x features. Arithmetic, no launches (suite
    chimera2021)."""
    return float(x.samples * math.prod(cut(_network(x.workload), 2, "blocks")[1].input_shape))


@lru_cache
def _network(name: str) -> Network:
    network: Network = registry.load("workload", name)(None, 1.0)
    return network


def predicted_throughput(x: Configuration, rows: Published) -> float:
    """Predicted throughput in sequences/s (suite chimera2021).

    throughput = minibatch / time of an iteration, by the list schedule of all passes

    A stage's passes take their multiply-accumulates times what one takes in the authors' time of BERT-large's layer
    (`prof/`, 8 samples of 128 tokens), whatever the size of a micro-batch. A message costs beta a byte, an all-reduce
    2 (r - 1) / r of it; beta is such that DAPPLE with GPT-2 on 2,048 nodes has its published throughput, the one row
    that is not judged. Schemes without a flush add up gradients before each update, with nothing beside it. With V100
    messages take no time, since no throughput is known to calibrate with. Arithmetic, no launches.
    """
    return x.minibatch / iteration_s(_setting(x, rows, _line(x, rows)))


def predicted_gain(x: Compared, rows: Published) -> float:
    """predicted_gain = predicted throughput of one configuration / of another

    See [predicted_throughput](predicted_throughput.md). Arithmetic, no launches.
    """
    return predicted_throughput(x.faster, rows) / predicted_throughput(x.slower, rows)


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


def _line(x: Configuration, rows: Published) -> Line:
    if x.gpu == "v100":
        return Line(0.0, 0.0)
    setting = _setting(DAPPLE_2048, rows, Line(0.0, 0.0))
    return Line(0.0, calibrated_beta(setting, DAPPLE_2048.minibatch / rows.positive(CALIBRATED_WITH)))


def _setting(x: Configuration, rows: Published, line: Line) -> Setting:
    stages = cut(_network(x.workload), x.stages, "blocks")
    forward, backward = (_seconds_of_mac(x.gpu, which, rows) for which in ("f", "b"))
    groups = x.nodes // x.stages
    return Setting(
        scheme=x.scheme,
        stages=x.stages,
        micro_batches=x.minibatch // (groups * x.samples),
        groups=groups,
        forward=tuple(stage.mac * x.samples * forward for stage in stages),
        backward=tuple(stage.mac * x.samples * backward for stage in stages),
        activations=ITEM * x.samples * math.prod(stages[1].input_shape),
        gradients=tuple(float(ITEM * stage.parameters) for stage in stages),
        line=line,
        recompute=x.recompute,
        pairs=x.pairs,
    )


def _seconds_of_mac(gpu: str, which: str, rows: Published) -> float:
    """Of a pass, by the authors' time of a layer, ms."""
    layers = [layer for layer in _network("bert48").layers if layer.name.startswith(LAYER)]
    mac = PROFILED_BATCH * sum(layer.mac for layer in layers)
    return rows.positive(f"chimera2021.prof.{gpu}.bertlarge.b8.{which}") / 1e3 / mac


METRICS = [
    Metric("formula_gap", "1", "lower", model=formula_gap, x=Grid),
    Metric("pairs_formula_gap", "1", "lower", model=pairs_formula_gap, x=Grid),
    Metric("slots_idle", "%", "lower", model=slots_idle, x=Slots),
    Metric("idle_slots", "slots", "lower", model=idle_slots, x=Slots),
    Metric("fewer_slots", "%", "higher", model=fewer_slots, x=Slots),
    Metric("largest_gradient", "values", None, model=largest_gradient, x=Cut),
    Metric("activation_values", "values", None, model=activation_values, x=Sent),
    Metric("predicted_throughput", "sequences/s", "higher", model=predicted_throughput, x=Configuration),
    Metric("predicted_gain", "x", "higher", model=predicted_gain, x=Compared),
    Metric("prediction_error", "%", "lower", model=prediction_error, x=Calibration),
]
