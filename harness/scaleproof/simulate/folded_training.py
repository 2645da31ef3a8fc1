"""Ranks of a simulated training that do the same over equal links, so that some stand for all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from scaleproof.rank_programs.effects import Receive
from scaleproof.rank_programs.graph.replicas import Replicas, neighbours, replicas_of
from scaleproof.simulate.case_patterns import Patterns
from scaleproof.simulate.collective_schedules import Pattern
from scaleproof.simulate.folded_calls import unchanged
from scaleproof.simulate.folded_links import FoldedLinks, folded_links
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.program import Steps
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.strategies.step_program import Plan, collectives


@dataclass(frozen=True, slots=True)
class Folding:
    """Equal replicas, of which the first is simulated, and its links."""

    replicas: Replicas
    links: FoldedLinks


def folding_of(case: TrainCase, plan: Plan, steps: Steps, network: Network, nodes: Sequence[int]) -> Folding | None:
    """The most replicas that are equal; None where there are none, and where ranks serve others. That all ranks compute
    equally fast is for the caller to know."""
    if any(isinstance(effect, Receive) for effect in steps.first):
        return None
    patterns = Patterns(case, plan.groups)
    calls = list({id(pattern): pattern for pattern in map(patterns.of, collectives(steps.first))}.values())
    for replicas in sorted(_candidates(case, plan), key=lambda each: -each.count):
        moved = replicas.steps()
        if all(unchanged(pattern, step) for pattern in calls for step in moved):
            try:
                links = folded_links(network, nodes, set(_pairs(calls)), moved, replicas.count, case.case_id)
            except SpecError:
                continue
            return Folding(replicas, links)
    return None


def _candidates(case: TrainCase, plan: Plan) -> Iterator[Replicas]:
    """How ranks may be alike: each like every other on a ring, by groups or nodes and places in these, or at distances
    that are powers of two; else groups, or nodes, like every other."""
    every = [[rank] for rank in range(case.ranks)]
    parts = [count for count in (plan.groups, case.nodes) if 1 < count < case.ranks and not case.ranks % count]
    if case.ranks > 1:
        yield replicas_of(every)
    for count in parts:
        yield replicas_of(every, (count, case.ranks // count))
        yield neighbours(case.ranks, count)
    if case.ranks > 2 and case.ranks & (case.ranks - 1) == 0:
        yield replicas_of(every, (2,) * (case.ranks.bit_length() - 1))


def _pairs(calls: Iterable[Pattern]) -> Iterator[tuple[int, int]]:
    for call in calls:
        for round_, _ in call.rounds:
            yield from zip(round_.source.tolist(), round_.destination.tolist(), strict=True)
