"""Random graphs of rank programs, and random clusters to run them on, to compare simulators."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import numpy as np

from scaleproof.rank_programs.graph.rank_graph import NONE, Builder, RankGraph
from scaleproof.rank_programs.graph.replicas import Replicas, neighbours
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


def random_replicas(generator: Random, count: int, ranks: int, operations: int) -> tuple[RankGraph, Replicas]:
    """A random graph that each of `count` replicas of `ranks` ranks carries out: computations, messages between its
    ranks and to those of other replicas, and collectives of the ranks of one replica, or of one place in all replicas.
    Each begins after a time of its own, so that no two of a rank begin at the same moment, of which either may go
    first."""
    replicas = neighbours(count * ranks, count)
    drawing = _InAllReplicas(generator, replicas.ranks)
    for operation in range(operations):
        drawing.add(operation)
    return drawing.builder.graph(), replicas


class _InAllReplicas:
    """Draws operations that all replicas have. `ranks`: of each replica and place."""

    def __init__(self, generator: Random, ranks: np.ndarray) -> None:
        self._generator, self._ranks, self._count = generator, ranks, len(ranks)
        self.builder = Builder(ranks.size)
        self._earlier: list[list[list[int]]] = [[] for _ in range(ranks.shape[1])]
        """For each place and operation: a node of each replica."""

    def add(self, operation: int) -> None:
        """Computing, a collective, or a message."""
        generator, (count, places) = self._generator, self._ranks.shape
        kind, place, there, away = (generator.random(), *map(generator.randrange, (places, places, count)))
        seconds, nbytes = generator.expovariate(1 / MEAN_S), float(int(10 ** generator.uniform(*BYTES)))
        before = self._begins(place)
        if kind < COMPUTING:
            last = self._earlier[place][-1:]
            waits = [[begins, *(nodes[replica] for nodes in last)] for replica, begins in enumerate(before)]
            self._each(place, lambda replica, rank: self.builder.compute(rank, seconds, waits[replica]))
        elif kind < 2 * COMPUTING and away % 2:
            self._inside(nbytes)
        elif kind < 2 * COMPUTING and count > 1:
            call = self.builder.collective("all_reduce", nbytes, self._ranks[:, place].tolist())
            self._each(place, lambda replica, rank: self.builder.join(rank, call, [before[replica]]))
        elif there != place or away:
            beyond = self._begins(there)
            to, source = np.roll(self._ranks[:, there], -away).tolist(), np.roll(self._ranks[:, place], away).tolist()
            send, receive = self.builder.send, self.builder.receive
            self._each(place, lambda each, rank: send(rank, to[each], nbytes, [before[each]], operation))
            self._each(there, lambda each, rank: receive(rank, source[each], nbytes, [beyond[each]], operation))

    def _inside(self, nbytes: float) -> None:
        calls = [self.builder.collective("all_reduce", nbytes, row) for row in self._ranks.tolist()]
        for place in range(self._ranks.shape[1]):
            self._each(place, partial(self._join, calls, self._begins(place)))

    def _join(self, calls: list[int], begins: list[int], replica: int, rank: int) -> int:
        return self.builder.join(rank, calls[replica], [begins[replica]])

    def _begins(self, place: int) -> list[int]:
        """In each replica, a time of its own after some earlier operations."""
        generator, earlier = self._generator, self._earlier[place]
        drawn = generator.sample(earlier, min(len(earlier), generator.randrange(MOST_WAITS + 1)))
        seconds, ranks = generator.expovariate(1 / MEAN_S), self._ranks[:, place].tolist()
        return [
            self.builder.compute(rank, seconds, [nodes[replica] for nodes in drawn], NONE)
            for replica, rank in enumerate(ranks)
        ]

    def _each(self, place: int, add: Callable[[int, int], int]) -> None:
        """A node of each replica; `add` is called with its number and rank."""
        self._earlier[place].append([add(*each) for each in enumerate(self._ranks[:, place].tolist())])
