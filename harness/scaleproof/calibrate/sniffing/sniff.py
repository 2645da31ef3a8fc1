"""The sniff test of nodes, a program with one rank on each: what all of a node's cores copy and multiply, and what the
link to the next node of a ring gives.

Nodes that are one machine in truth take turns, so that each has all of it; links take turns so that none shares a
machine with another. Repetitions of those that take turns are interleaved. Nothing is judged here
(launch/preflight/slow_nodes.py does)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from scaleproof.calibrate.sniffing.ring import Ring
from scaleproof.calibrate.sniffing.workers import Workers
from scaleproof.core.context import RankContext
from scaleproof.record.cgroups import memory_left
from scaleproof.record.host import available_mib, boot_id

REPETITIONS, WARMUP = 9, 1
"""9 give an interval that leaves out the fastest and the slowest."""
LARGEST, PARTS = 32 << 20, 8
"""Bytes that each core copies at a time: more than its part of any cache; all cores' arrays take at most a quarter of
the node's memory."""
Turns = list[set[int]]


def run(context: RankContext) -> None:
    """Leave all repetitions in the facts as `sniff`."""
    cores, rank, nodes = sorted(os.sched_getaffinity(0)), context.rank, context.world_size
    told = context.rendezvous.exchange("sniff", rank, nodes, [boot_id(), _room(len(cores))])
    boots, nbytes = [boot for boot, _ in told], min(room for _, room in told)
    found: dict[str, object] = {"boot": boots[rank], "cores": len(cores), "nbytes": nbytes}
    with Ring(context) as ring, Workers(cores, nbytes) as workers:
        context.at(0, "memory")
        found["copied"] = in_turns(ring, rank, one_per_machine(boots), lambda: workers.rate("memory"))
        context.at(0, "product")
        found["multiplied"] = in_turns(ring, rank, one_per_machine(boots), lambda: workers.rate("product"))
        if nodes > 1:
            context.at(0, "link")
            found |= _links(ring, rank, links_apart(boots))
    context.facts["sniff"] = found


def _room(cores: int) -> int:
    """Bytes that a core may copy here at a time."""
    free, left = available_mib() << 20, memory_left()
    return min(LARGEST, (free if left is None else min(free, left)) // (PARTS * cores))


def one_per_machine(boots: Sequence[str]) -> Turns:
    """Nodes by turn: the first of each machine, the second of each, ..."""
    turns: Turns = []
    for node, boot in enumerate(boots):
        place = boots[:node].count(boot)
        turns += [set()] * (place == len(turns))
        turns[place] = turns[place] | {node}
    return turns


def links_apart(boots: Sequence[str]) -> Turns:
    """Links by turn, each named by the node that sends: no two of a turn have a machine in common."""
    turns, busy = list[set[int]](), list[set[str]]()
    for node, boot in enumerate(boots):
        ends = {boot, boots[(node + 1) % len(boots)]}
        place = next((place for place, machines in enumerate(busy) if not machines & ends), len(turns))
        if place == len(turns):
            turns.append(set())
            busy.append(set())
        turns[place].add(node)
        busy[place] |= ends
    return turns


def in_turns(ring: Ring, rank: int, turns: Turns, measure: Callable[[], float]) -> list[float]:
    """All repetitions, those of warm-up left out. Nodes that are all in one turn meet only at its beginning."""
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
    """Bytes per second to the next node, and seconds there and back."""
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
