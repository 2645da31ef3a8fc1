"""Broadcast and all-reduce over packed trees, or over rings without a common link, on the links of a cluster's
description; all-reduce behind a switch and over several servers."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from scaleproof.packed_trees.bounds import best_root
from scaleproof.packed_trees.fewest_trees import few_trees
from scaleproof.packed_trees.link_graph import LinkGraph, machine
from scaleproof.packed_trees.other_forms import beside_links, double_binary_trees, one_hop_trees, three_phases
from scaleproof.packed_trees.rings import Ring, most_rings
from scaleproof.packed_trees.times import adapting, next_of
from scaleproof.packed_trees.tree_plan import TreePlan, chain_plans, ring_parts, tree_plans
from scaleproof.rank_programs.collectives import barrier
from scaleproof.rank_programs.effects import Charge, Receive, Send
from scaleproof.rank_programs.flows import Flow, beside
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.spec.errors import SpecError
from scaleproof.spec.program_options import choice, real, whole

ITEM = 4
OVER_LINKS, OVER_ANYTHING = ("trees", "rings", "both_channels"), ("one_ring",)
FOR_ALL_REDUCE = ("one_hop", "double_trees", "three_phases")
"""Values of option `over`: over the links of a connected graph, over whatever ways there are, and all-reduces alone."""
UP, DOWN = 0, 1
"""Phases of a tree: to the root, and from it."""
ADAPTING, PLANS = 1 << 20, (1 << 20) + 1
"""Tags of times and chunks, and of plans: above those of all trees."""
SMALLEST = 16 << 10
"""The chunk that adapting begins with, bytes."""
PERIOD = 8191
"""Elements after which values repeat: a prime, so that no chunk of a usual size holds the values of another. Sums of
all ranks stay whole numbers that float32 has exactly, below 2^24."""


@lru_cache
def _graph(cluster: str) -> LinkGraph:
    return machine(cluster)


class LinkCollectives(RankProgram):
    """Option `operation`: broadcast or all_reduce; `over`: trees, rings, one_ring: through the ranks in order and in
    one direction, over whatever way there is between them, both_channels: trees, and `slow_percent` of the array over
    PCI Express, and for an all-reduce one_hop, double_trees, three_phases (packed_trees/other_forms.py); `chunk_kib`:
    most that is sent at once, 0: adapted during the warm-up, step by step (packed_trees/times.py); `counted` (default
    0): 1 lets a launch with wrong elements end well, so that a claim can count them; otherwise it fails. Values are
    whole numbers, so that sums are exact, and neighbouring elements differ."""

    def main(self) -> Flow:
        """See RankProgram."""
        self.operation, self.over = self._chosen()
        chunk_kib, search = int(self.case.options["chunk_kib"]), adapting(SMALLEST)
        self.chunk = int(chunk_kib * 1024 or next(search)) // ITEM
        self.fastest = (math.inf, self.chunk)
        self.root = 0
        if self.over in OVER_LINKS:
            self.graph = _graph(str(self.case.value("fabric.cluster")))
            self.root = best_root(self.graph)[0]
        self.counted = bool(whole({"counted": 0} | self.case.options, "counted", 0, 1))
        self.places = (np.arange(self.case.sizes[0] // ITEM) % PERIOD).astype(np.float32)
        self.array = np.zeros_like(self.places)
        self.wrong = 0
        self.trees = yield from self._plans()
        yield from barrier(self.rank, self.world_size)
        for step in self.steps():
            self._fill(step)
            began = self._clock.now()
            yield from beside(list(self._flows()), self.world_size)
            if not chunk_kib and step < self.case.warmup:
                last = step == self.case.warmup - 1
                yield from self._adapt(search, self._clock.now() - began, last)
                self._clock.note("chunk", float(self.chunk * ITEM))
            wrong = self._wrong(step)
            self._clock.note("wrong", float(wrong))
            self.wrong += wrong
            # The root of a broadcast would begin while others still receive. An all-reduce waits for all by itself, but
            # the warm-up has to end on all ranks before time is taken.
            if self.operation == "broadcast" or step < self.case.warmup:
                yield from barrier(self.rank, self.world_size)

    def _chosen(self) -> tuple[str, str]:
        """SpecError for an operation that is not there, or not over this."""
        operation = choice(self.case.options, "operation", ("broadcast", "all_reduce"))
        over = choice(self.case.options, "over", (*OVER_LINKS, *OVER_ANYTHING, *FOR_ALL_REDUCE))
        if operation == "broadcast" and over in FOR_ALL_REDUCE:
            can = ", ".join((*OVER_LINKS, *OVER_ANYTHING))
            raise SpecError(f"options.over: {over!r} is for an all-reduce; a broadcast goes over {can}")
        self.slow_percent = real(self.case.options, "slow_percent", 0, 100) if over == "both_channels" else 0.0
        return operation, over

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
        if self.operation == "all_reduce" or self.rank == self.root:
            np.add(self.places, self.rank + 1 + step, out=self.array)
        else:
            self.array.fill(0.0)

    def _wrong(self, step: int) -> int:
        """Elements that differ from the sum of all ranks' arrays, or from the root's."""
        if self.operation == "broadcast":
            wanted = self.places + (self.root + 1 + step)
        else:
            wanted = self.places * self.world_size + sum(rank + 1 + step for rank in range(self.world_size))
        return int(np.count_nonzero(self.array != wanted))

    def _plans(self) -> Generator[Any, Any, list[TreePlan]]:
        """Of trees, and of the chains of a broadcast over rings. Rank 0 looks for trees and tells its peers: the search
        takes seconds of a core, and as it may end by the clock, two ranks could find different ones."""
        if self.over in ("rings", "one_ring"):
            return chain_plans(self._rings, self.root, len(self.array), self.over == "rings")
        if self.rank:
            told = yield Receive(0, PLANS, "for the trees")
            return [TreePlan.of_numbers(row.tolist()) for row in told.value.reshape(-1, self.world_size + 2)]
        plans = self._searched(len(self.array))
        rows = np.array([plan.numbers for plan in plans], np.int64)
        for peer in range(1, self.world_size):
            yield Send(peer, rows.ravel(), PLANS, control=True)
        return plans

    def _searched(self, elements: int) -> list[TreePlan]:
        if self.over == "one_hop":
            return one_hop_trees(self.world_size, elements)
        if self.over == "double_trees":
            return double_binary_trees(self.world_size, elements)
        if self.over == "three_phases":
            return three_phases(_graph(str(self.case.value("fabric.cluster"))), elements)
        packing = few_trees(self.graph, None if self.operation == "all_reduce" else self.root)
        return (
            beside_links(packing, elements, self.slow_percent) if self.slow_percent else tree_plans(packing, elements)
        )

    @property
    def _rings(self) -> Sequence[Ring]:
        return most_rings(self.graph) if self.over == "rings" else [tuple(range(self.world_size))]

    def _flows(self) -> Iterator[Flow]:
        if self.over not in ("rings", "one_ring") or self.operation == "broadcast":
            for number, plan in enumerate(self.trees):
                yield from self._tree(number, plan)
            return
        for number, (ring, start, stop) in enumerate(ring_parts(self._rings, len(self.array), self.over == "rings")):
            yield self._ring(number, ring, start, stop)

    def _tree(self, number: int, plan: TreePlan) -> Iterator[Flow]:
        """This rank's part of a tree. What was added up goes down at once, while the rest goes up."""
        parts = list(plan.chunks(self._chunk_of(plan)))
        up, down = partial(self._up, number, plan), partial(self._down, number, plan)
        if self.operation == "broadcast":
            yield self._one_by_one([down], parts)
        elif plan.parents[self.rank] is None:
            yield self._one_by_one([up, down], parts)
        elif plan.children[self.rank]:
            yield self._one_by_one([up], parts)
            yield self._one_by_one([down], parts)
        else:
            yield self._leaf(up, down, parts, 2 * plan.depth)

    def _one_by_one(self, calls: Sequence[Callable[[slice], Flow]], parts: Sequence[slice]) -> Flow:
        """All calls for a chunk, before the next chunk."""
        for part in parts:
            for call in calls:
                yield from call(part)

    def _leaf(
        self, up: Callable[[slice], Flow], down: Callable[[slice], Flow], parts: Sequence[slice], most: int
    ) -> Flow:
        """A leaf has at most as many chunks under way as fill the way to the root and back: more would wait on links,
        before chunks of other trees."""
        for place, part in enumerate(parts):
            yield from up(part)
            if place >= most:
                yield from down(parts[place - most])
        for part in parts[max(len(parts) - most, 0) :]:
            yield from down(part)

    def _chunk_of(self, plan: TreePlan) -> int:
        """Elements. All trees have as many chunks: where two share a link they take turns, so that each gets as much
        of the link as its weight says."""
        largest = max(tree.stop - tree.start for tree in self.trees)
        return math.ceil((plan.stop - plan.start) / math.ceil(largest / self.chunk))

    def _up(self, number: int, plan: TreePlan, part: slice) -> Flow:
        """Adds what the children send, and sends it on."""
        for child in plan.children[self.rank]:
            arrived = yield Receive(child, _tag(number, UP), "in a reduction over trees")
            self.array[part] += arrived.value
            yield Charge(arrived.value.nbytes)
        if (parent := plan.parents[self.rank]) is not None:
            yield Send(parent, self.array[part], _tag(number, UP))

    def _down(self, number: int, plan: TreePlan, part: slice) -> Flow:
        if (parent := plan.parents[self.rank]) is not None:
            arrived = yield Receive(parent, _tag(number, DOWN), "in a broadcast over trees")
            self.array[part] = arrived.value
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
        """Every element of every iteration is what it should be, to the bit, unless wrong ones are counted."""
        return (
            []
            if self.counted
            else [("values", not self.wrong, f"{self.wrong} wrong elements of {len(self.array)} in each iteration")]
        )


def _tag(number: int, phase: int) -> int:
    return 2 * number + phase


PROGRAM = LinkCollectives
