"""The graph of one iteration of a pipeline with replicas, as large models are trained: each stage computes one forward
and one backward pass in turn, and sums its gradients over its replicas at the end."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from scaleproof.rank_programs.graph.rank_graph import Builder, RankGraph


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`passed`: bytes between two stages for a micro-batch; `summed`: bytes of a stage's gradients; `forward_s`: of a
    stage and a micro-batch, half of a backward pass; `sigma`: spread of the logarithm of computing times."""

    stages: int = 32
    replicas: int = 64
    micro_batches: int = 16
    passed: float = 3.3e6
    summed: float = 2e8
    forward_s: float = 10e-3
    sigma: float = 0.02

    def rank(self, stage: int, replica: int) -> int:
        """The replicas of a stage are next to each other."""
        return stage * self.replicas + replica


def order_of(stage: int, stages: int, micro_batches: int) -> list[tuple[bool, int]]:
    """What a stage computes one after the other: whether forwards, and the micro-batch. As few micro-batches as
    possible are under way."""
    ahead = min(stages - stage, micro_batches)
    order = [(True, number) for number in range(ahead)]
    for number in range(micro_batches):
        order.append((False, number))
        if ahead + number < micro_batches:
            order.append((True, ahead + number))
    return order


def pipeline_graph(pipeline: Pipeline, seed: int = 1) -> RankGraph:
    """One iteration of all ranks."""
    builder, dice = Builder(pipeline.stages * pipeline.replicas), Random(seed)
    last = {}
    for stage in range(pipeline.stages):
        for replica in range(pipeline.replicas):
            last[stage, replica] = _add_rank(builder, dice, pipeline, stage, replica)
    for stage in range(pipeline.stages):
        members = [pipeline.rank(stage, replica) for replica in range(pipeline.replicas)]
        call = builder.collective("all_reduce", pipeline.summed, members)
        for replica, rank in enumerate(members):
            builder.join(rank, call, [last[stage, replica]])
    return builder.graph()


def _add_rank(builder: Builder, dice: Random, pipeline: Pipeline, stage: int, replica: int) -> int:
    """The last computation of a rank."""
    rank, computed = pipeline.rank(stage, replica), -1
    for forwards, number in order_of(stage, pipeline.stages, pipeline.micro_batches):
        step = 1 if forwards else -1
        before, behind = stage - step, stage + step
        waits = [computed] if computed >= 0 else []
        if 0 <= before < pipeline.stages:
            waits.append(_receive(builder, pipeline, rank, pipeline.rank(before, replica), forwards, number))
        seconds = pipeline.forward_s * (1 if forwards else 2) * dice.lognormvariate(0.0, pipeline.sigma)
        computed = builder.compute(rank, seconds, waits)
        if 0 <= behind < pipeline.stages:
            peer = pipeline.rank(behind, replica)
            builder.send(rank, peer, pipeline.passed, [computed], tag=2 * number + forwards)
    return computed


def _receive(builder: Builder, pipeline: Pipeline, rank: int, peer: int, forwards: bool, number: int) -> int:
    return builder.receive(rank, peer, pipeline.passed, tag=2 * number + forwards)
