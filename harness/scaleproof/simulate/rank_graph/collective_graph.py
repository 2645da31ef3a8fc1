"""The messages of a collective as a graph: each rank enters a round when its messages of the round before are done."""

from __future__ import annotations

from scaleproof.rank_programs.graph.rank_graph import Builder, RankGraph
from scaleproof.simulate.collective_schedules import Pattern


def collective_graph(pattern: Pattern, nbytes: float, gamma: float = 0.0) -> RankGraph:
    """A call over `nbytes` bytes; what is reduced costs its receiver `gamma` s per byte. The tag is the round."""
    builder = Builder(pattern.ranks)
    waits: list[list[int]] = [[] for _ in range(pattern.ranks)]
    number = 0
    for round_, times in pattern.rounds:
        messages = list(
            zip(
                round_.source.tolist(),
                round_.destination.tolist(),
                (round_.share * nbytes).tolist(),
                round_.reduces.tolist(),
                strict=True,
            )
        )
        for _ in range(times):
            following: dict[int, list[int]] = {}
            for source, destination, size, reduces in messages:
                sent = builder.send(source, destination, size, waits[source], tag=number)
                received = builder.receive(destination, source, size, waits[destination], tag=number)
                if reduces and gamma:
                    received = builder.compute(destination, gamma * size, [received])
                following.setdefault(source, []).append(sent)
                following.setdefault(destination, []).append(received)
            for rank, nodes in following.items():
                waits[rank] = nodes
            number += 1
    return builder.graph()
