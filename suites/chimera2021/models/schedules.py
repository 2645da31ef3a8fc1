"""Metrics of this paper's schedules against its formulas, and of what its networks send. Arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Count, Published
from scaleproof.claims.metrics import Metric
from scaleproof.pipelines.schemes import iteration_time, schedule_of
from scaleproof.pipelines.timing import PassTimes, timeline
from scaleproof.workloads.stages import cut

from .arguments import NetworkName, Scheme, Stages, network

EQUAL = PassTimes(1.0, 1.0)
"""Formulas of the paper assume that both passes take equally long."""


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

    workload: NetworkName = Field(description="The network.")
    stages: int = Field(ge=1, le=64, description="D; 1: the whole.")


class Sent(Arguments):
    """Micro-batches between two stages."""

    workload: NetworkName = Field(description="The network.")
    samples: Count = Field(description="B, samples of a micro-batch.")


def idle_share_gap(x: Grid, rows: Published) -> float:
    """Largest distance between the idle share of a schedule and the paper's formula.

    idle_share_gap = max over D = 4, 8, 16, 32 with N = D, and N = 2 D for one-way schemes, of |idle share - formula|

    Passes take equally long, messages take no time. Formulas of Table 2 (suite chimera2021). Arithmetic, no launches.
    """
    gaps = []
    for stages in (4, 8, 16, 32):
        for count in (stages, 2 * stages) if x.formula == "one_way" else (stages,):
            gaps.append(abs(_idle_share(x.scheme, stages, count) - float(_formula(x.formula, stages, count))))
    return max(gaps)


def pairs_idle_share_gap(x: Grid, rows: Published) -> float:
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


def _idle_share(scheme: str, stages: int, count: int) -> float:
    """Of one iteration among many."""
    schedule = schedule_of(scheme, stages, count)
    line = timeline(schedule, EQUAL)
    if schedule.flush:
        return line.idle_share
    return 1 - line.busy / (len(line.spans) * iteration_time(scheme, stages, count, EQUAL))


def _formula(name: str, stages: int, count: int) -> Fraction:
    if name == "none":
        return Fraction(0)
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
    return float(cut(network(x.workload), x.stages, "blocks")[0].parameters)


def activation_values(x: Sent, rows: Published) -> float:
    """Values that a micro-batch sends to the next stage: samples x positions x features. Arithmetic, no launches (suite
    chimera2021)."""
    return float(x.samples * math.prod(cut(network(x.workload), 2, "blocks")[1].input_shape))


METRICS = [
    Metric("idle_share_gap", "1", "lower", model=idle_share_gap, x=Grid),
    Metric("pairs_idle_share_gap", "1", "lower", model=pairs_idle_share_gap, x=Grid),
    Metric("slots_idle", "%", "lower", model=slots_idle, x=Slots),
    Metric("idle_slots", "slots", "lower", model=idle_slots, x=Slots),
    Metric("fewer_slots", "%", "higher", model=fewer_slots, x=Slots),
    Metric("largest_gradient", "values", None, model=largest_gradient, x=Cut),
    Metric("activation_values", "values", None, model=activation_values, x=Sent),
]
