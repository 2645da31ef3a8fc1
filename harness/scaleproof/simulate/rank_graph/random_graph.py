"""Random graphs of rank programs, and random clusters to run them on, to compare simulators."""

from __future__ import annotations

from random import Random

from scaleproof.rank_programs.graph.rank_graph import Builder, RankGraph
from scaleproof.spec.cluster import Cluster, Link, node_name

MBITS = (100.0, 1000.0, 10_000.0)
COMPUTING = 0.3
"""Share of operations that compute; the others are messages."""
MEAN_S = 1e-3
"""Of a computation."""
BYTES = (2.0, 7.0)
"""Logarithms of the smallest and the largest message."""
MOST_WAITS = 2


def random_cluster(generator: Random, nodes: int) -> Cluster:
    """One switch, or several with a switch above them; links of different rates, without delays."""
    leaves = generator.randrange(1, 5)
    switches = [f"switch{number}" for number in range(leaves)]
    links = [Link((node_name(node), generator.choice(switches)), generator.choice(MBITS), 0.0) for node in range(nodes)]
    if leaves > 1:
        links += [Link((switch, "core"), generator.choice(MBITS), 0.0) for switch in switches]
        switches.append("core")
    return Cluster("random", nodes, tuple(switches), tuple(links))


def random_graph(generator: Random, ranks: int, operations: int) -> RankGraph:
    """Computations and messages that wait for up to MOST_WAITS earlier operations of their rank, and each computation
    for the one before it on its rank."""
    builder, earlier = Builder(ranks), [list[int]() for _ in range(ranks)]
    computed: dict[int, int] = {}

    def waits(rank: int) -> list[int]:
        return generator.sample(earlier[rank], min(len(earlier[rank]), generator.randrange(MOST_WAITS + 1)))

    for operation in range(operations):
        if generator.random() < COMPUTING:
            rank = generator.randrange(ranks)
            after = {*waits(rank), *([computed[rank]] if rank in computed else [])}
            computed[rank] = builder.compute(rank, generator.expovariate(1 / MEAN_S), sorted(after))
            earlier[rank].append(computed[rank])
        else:
            source, destination = generator.sample(range(ranks), 2)
            nbytes = float(int(10 ** generator.uniform(*BYTES)))
            earlier[source].append(builder.send(source, destination, nbytes, waits(source), tag=operation))
            earlier[destination].append(builder.receive(destination, source, nbytes, waits(destination), tag=operation))
    return builder.graph()
