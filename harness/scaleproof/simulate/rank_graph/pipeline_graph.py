"""A step of replicas of a pipeline as a graph: micro-batches go forward through the stages, their gradients come back
(GPipe), and each stage's gradients are summed over all replicas."""

from __future__ import annotations

from collections.abc import Sequence

from scaleproof.rank_programs.effects import AwaitAll, Collective, Compute, Receive, Send, Start, weightless
from scaleproof.rank_programs.graph.emitted import Program, graph_of_programs
from scaleproof.rank_programs.graph.rank_graph import RankGraph
from scaleproof.rank_programs.graph.replicas import Replicas, replicas_of

NAME = "replicas"
"""Of the groups of ranks that have the same stage."""


def pipelines(
    forward_s: Sequence[float],
    replicas: Replicas,
    micro_batches: int,
    activation_nbytes: float,
    parameter_nbytes: Sequence[float],
    algorithm: str = "ring",
) -> RankGraph:
    """`forward_s`: of each stage, s for a micro-batch; its backward pass takes twice as long. `parameter_nbytes`: of
    each stage. A stage is the rank at its place in each replica."""
    groups = {NAME: replicas.ranks.T.tolist()}
    programs = {
        rank: _stage(row, stage, forward_s[stage], micro_batches, activation_nbytes, parameter_nbytes[stage])
        for row in replicas.ranks.tolist()
        for stage, rank in enumerate(row)
    }
    return graph_of_programs([programs[rank] for rank in sorted(programs)], groups, algorithm, name="pipelines")


def on_torus(stages: int, shape: Sequence[int]) -> Replicas:
    """Replicas of neighbouring ranks."""
    count = 1
    for side in shape:
        count *= side
    return replicas_of([range(first, first + stages) for first in range(0, count * stages, stages)], shape)


def _stage(
    row: Sequence[int], stage: int, seconds: float, micro_batches: int, activation: float, parameters: float
) -> Program:
    sent = []
    for number in range(micro_batches):
        if stage:
            yield Receive(row[stage - 1], 2 * number)
        yield Compute(seconds, event="forward")
        if stage + 1 < len(row):
            sent.append((yield Start(Send(row[stage + 1], weightless(activation), 2 * number))))
    for number in range(micro_batches):
        if stage + 1 < len(row):
            yield Receive(row[stage + 1], 2 * number + 1)
        yield Compute(2 * seconds, event="backward")
        if stage:
            sent.append((yield Start(Send(row[stage - 1], weightless(activation), 2 * number + 1), 1)))
    yield AwaitAll(tuple(sent))
    yield Collective("all_reduce", weightless(parameters), 2 * micro_batches, NAME)
