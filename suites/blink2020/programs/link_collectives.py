"""Broadcast and all-reduce over packed trees, or over rings without a common link, on the links of a cluster's
description."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from functools import lru_cache

import numpy as np

from scaleproof.packed_trees.bounds import best_root
from scaleproof.packed_trees.fewest_trees import few_trees
from scaleproof.packed_trees.link_graph import LinkGraph, machine
from scaleproof.packed_trees.rings import Ring, most_rings
from scaleproof.packed_trees.times import adapting, next_of
from scaleproof.packed_trees.tree_plan import TreePlan, chain_plans, ring_parts, tree_plans
from scaleproof.rank_programs.collectives import barrier
from scaleproof.rank_programs.effects import Charge, Receive, Send
from scaleproof.rank_programs.flows import Flow, beside
from scaleproof.rank_programs.rank_program import RankProgram

ITEM = 4
UP, DOWN = 0, 1
"""Phases of a tree: to the root, and from it."""
ADAPTING = 1 << 20
"""The tag of times and chunks: above those of all trees."""
SMALLEST = 16 << 10
"""The chunk that adapting begins with, bytes."""


@lru_cache
def _graph(cluster: str) -> LinkGraph:
    return machine(cluster)


class LinkCollectives(RankProgram):
    """Option `operation`: broadcast or all_reduce; `over`: trees, rings, or one_ring: through the ranks in order and in
    one direction, over whatever way there is between them; `chunk_kib`: most that is sent at once, 0: adapted during
    the warm-up, step by step (packed_trees/times.py). Values are whole numbers, so that sums are exact."""

    def main(self) -> Flow:
        """See RankProgram."""
        self.operation, self.over = str(self.case.options["operation"]), str(self.case.options["over"])
        chunk_kib, search = int(self.case.options["chunk_kib"]), adapting(SMALLEST)
        self.chunk = int(chunk_kib * 1024 or next(search)) // ITEM
        self.fastest = (math.inf, self.chunk)
        self.root = 0
        if self.over != "one_ring":
            self.graph = _graph(str(self.case.value("fabric.cluster")))
            self.root = best_root(self.graph)[0]
        self.array = np.zeros(self.case.sizes[0] // ITEM, np.float32)
        self.wrong = 0
        for step in self.steps():
            self._fill(step)
            yield from barrier(self.rank, self.world_size)
            began = self._clock.now()
            yield from beside(list(self._flows()), self.world_size)
            if not chunk_kib and step < self.case.warmup:
                last = step == self.case.warmup - 1
                yield from self._adapt(search, self._clock.now() - began, last)
                self._clock.note("chunk", float(self.chunk * ITEM))
            self.wrong += int((self.array != self._wanted(step)).sum())

    def _adapt(self, search: Generator[float, float, None], taken: float, last: bool) -> Flow:
        """Rank 0 decides by the time of the slowest rank which chunk all try next; after the `last` one, and where the
        search has ended, the fastest that was tried."""
        if self.rank:
            yield Send(0, np.array([taken], np.float32), ADAPTING, control=True)
            decided = yield Receive(0, ADAPTING, "for the next chunk")
            self.chunk = int(decided.value[0])
            return
        for peer in range(1, self.world_size):
            told = yield Receive(peer, ADAPTING, "for the times of all ranks")
            taken = max(taken, float(told.value[0]))
        self.fastest = min(self.fastest, (taken, self.chunk))
        following = next_of(search, taken)
        self.chunk = self.fastest[1] if last or following is None else int(following) // ITEM
        for peer in range(1, self.world_size):
            yield Send(peer, np.array([self.chunk], np.float32), ADAPTING, control=True)

    def _fill(self, step: int) -> None:
        own = float(self.rank + 1 + step)
        self.array.fill(own if self.operation == "all_reduce" or self.rank == self.root else 0.0)

    def _wanted(self, step: int) -> float:
        if self.operation == "broadcast":
            return float(self.root + 1 + step)
        return float(sum(rank + 1 + step for rank in range(self.world_size)))

    def _flows(self) -> Iterator[Flow]:
        elements = len(self.array)
        if self.over == "trees":
            packing = few_trees(self.graph, None if self.operation == "all_reduce" else self.root)
            for number, plan in enumerate(tree_plans(packing, elements)):
                yield from self._tree(number, plan)
            return
        both = self.over == "rings"
        rings: Sequence[Ring] = most_rings(self.graph) if both else [tuple(range(self.world_size))]
        if self.operation == "broadcast":
            for number, plan in enumerate(chain_plans(rings, self.root, elements, both)):
                yield from self._tree(number, plan)
            return
        for number, (ring, start, stop) in enumerate(ring_parts(rings, elements, both)):
            yield self._ring(number, ring, start, stop)

    def _tree(self, number: int, plan: TreePlan) -> Iterator[Flow]:
        if self.operation == "all_reduce":
            yield self._up(number, plan)
        if plan.parents[self.rank] is not None:
            yield self._down(number, plan)
        elif self.operation == "broadcast":
            yield self._from_root(number, plan)

    def _up(self, number: int, plan: TreePlan) -> Flow:
        """Adds up what the children send, chunk by chunk, and sends it on. The root sends it down at once."""
        parent = plan.parents[self.rank]
        for part in plan.chunks(self.chunk):
            for child in plan.children[self.rank]:
                arrived = yield Receive(child, _tag(number, UP), "in a reduction over trees")
                self.array[part] += arrived.value
                yield Charge(arrived.value.nbytes)
            if parent is None:
                yield from self._to_children(number, plan, part)
            else:
                yield Send(parent, self.array[part], _tag(number, UP))

    def _from_root(self, number: int, plan: TreePlan) -> Flow:
        for part in plan.chunks(self.chunk):
            yield from self._to_children(number, plan, part)

    def _down(self, number: int, plan: TreePlan) -> Flow:
        parent = plan.parents[self.rank]
        assert parent is not None
        for part in plan.chunks(self.chunk):
            arrived = yield Receive(parent, _tag(number, DOWN), "in a broadcast over trees")
            self.array[part] = arrived.value
            yield from self._to_children(number, plan, part)

    def _to_children(self, number: int, plan: TreePlan, part: slice) -> Flow:
        for child in plan.children[self.rank]:
            yield Send(child, self.array[part], _tag(number, DOWN))

    def _ring(self, number: int, ring: Ring, start: int, stop: int) -> Flow:
        """Reduce-scatter and all-gather around a ring: 2 (n - 1) rounds of one n-th of the part each, in chunks."""
        place, count = ring.index(self.rank), len(ring)
        following, before = ring[(place + 1) % count], ring[(place - 1) % count]
        edges = [start + (stop - start) * part // count for part in range(count + 1)]
        for turn in range(2 * (count - 1)):
            sent, received = (place - turn) % count, (place - turn - 1) % count
            for part in self._chunks(edges[sent], edges[sent + 1]):
                yield Send(following, self.array[part], _tag(number, UP))
            for part in self._chunks(edges[received], edges[received + 1]):
                arrived = yield Receive(before, _tag(number, UP), "in a ring")
                if turn < count - 1:
                    self.array[part] += arrived.value
                    yield Charge(arrived.value.nbytes)
                else:
                    self.array[part] = arrived.value

    def _chunks(self, start: int, stop: int) -> Iterator[slice]:
        for begin in range(start, stop, self.chunk):
            yield slice(begin, min(begin + self.chunk, stop))

    def checks(self) -> list[tuple[str, bool, str]]:
        """Every element of every iteration is what it should be, to the bit."""
        return [("values", not self.wrong, f"{self.wrong} wrong elements of {len(self.array)} in each iteration")]


def _tag(number: int, phase: int) -> int:
    return 2 * number + phase


PROGRAM = LinkCollectives
