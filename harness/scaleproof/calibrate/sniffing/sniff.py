"""The sniff test of nodes, a program with one rank per node. It measures the rates at which all cores of a node copy
and multiply, and the rate and round trip of the link to the next node of a ring.

Nodes that are one machine take turns, so that each has all of the machine. Links that share a machine take turns too.
Repetitions of those that take turns are interleaved. launch/preflight/slow_nodes.py judges the figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from scaleproof.calibrate.sniffing.ring import Ring
from scaleproof.calibrate.sniffing.workers import Workers
from scaleproof.core.context import RankContext
from scaleproof.record.cgroups import memory_left
from scaleproof.record.host import available_mib, boot_id

REPETITIONS, WARMUP = 9, 1
"""9 values give an interval without the fastest and the slowest."""
LARGEST, PARTS = 32 << 20, 8
"""Bytes that each core copies at a time: more than its part of any cache. PARTS bounds the arrays of all cores to a
quarter of the node's memory."""
Turns = list[set[int]]


def run(context: RankContext) -> None:
    """Write all repetitions into the facts as `sniff`."""
    cores, rank, nodes = sorted(os.sched_getaffinity(0)), context.rank, context.world_size
    of_nodes = context.rendezvous.exchange("sniff", rank, nodes, [boot_id(), _bytes_per_core(len(cores))])
    boots, nbytes = [boot for boot, _ in of_nodes], min(nbytes for _, nbytes in of_nodes)
    figures: dict[str, object] = {"boot": boots[rank], "cores": len(cores), "nbytes": nbytes}
    with Ring(context) as ring, Workers(cores, nbytes) as workers:
        context.at(0, "memory")
        figures["copied"] = in_turns(ring, rank, one_per_machine(boots), lambda: workers.rate("memory"))
        context.at(0, "product")
        figures["multiplied"] = in_turns(ring, rank, one_per_machine(boots), lambda: workers.rate("product"))
        if nodes > 1:
            context.at(0, "link")
            figures |= _links(ring, rank, links_apart(boots))
    context.facts["sniff"] = figures


def _bytes_per_core(cores: int) -> int:
    """Bytes that a core may copy at a time on this node."""
    free, in_cgroup = available_mib() << 20, memory_left()
    return min(LARGEST, (free if in_cgroup is None else min(free, in_cgroup)) // (PARTS * cores))


def one_per_machine(boots: Sequence[str]) -> Turns:
    """Nodes by turn: the first of each machine, the second of each, ..."""
    turns: Turns = []
    for node, boot in enumerate(boots):
        turn = boots[:node].count(boot)
        turns += [set()] * (turn == len(turns))
        turns[turn] = turns[turn] | {node}
    return turns


def links_apart(boots: Sequence[str]) -> Turns:
    """Links by turn, each named by the node that sends: no two links of a turn share a machine."""
    turns, busy = list[set[int]](), list[set[str]]()
    for node, boot in enumerate(boots):
        ends = {boot, boots[(node + 1) % len(boots)]}
        turn = next((index for index, machines in enumerate(busy) if not machines & ends), len(turns))
        if turn == len(turns):
            turns.append(set())
            busy.append(set())
        turns[turn].add(node)
        busy[turn] |= ends
    return turns


def in_turns(ring: Ring, rank: int, turns: Turns, measure: Callable[[], float]) -> list[float]:
    """The values of all repetitions without the warm-up. Where all nodes are in one turn they meet only at its
    beginning."""
    values = []
    ring.meet()
    for _ in range(WARMUP + REPETITIONS):
        for turn in turns:
            if len(turns) > 1:
                ring.meet()
            if rank in turn:
                values.append(measure())
    ring.meet()
    return values[WARMUP:]


def _links(ring: Ring, rank: int, turns: Turns) -> dict[str, object]:
    """Bytes per second to the next node, and round trips in s."""
    rates, trips = list[float](), list[float]()
    for repetition in range(WARMUP + REPETITIONS):
        for turn in turns:
            ring.meet()
            if rank in turn:
                rates.append(ring.stream())
                trips.append(ring.trip())
                ring.end_turn()
            elif ring.previous in turn:
                ring.answer()
        assert len(rates) == repetition + 1
    ring.meet()
    return {"rate": rates[WARMUP:], "trip": trips[WARMUP:]}
