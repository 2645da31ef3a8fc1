"""Compiles a collective for ranks that access each other's memory: which rank accesses which bytes in which order, and
what it must wait for.

The buffer is divided into segments that fit into a processor's cache, and every segment runs the whole schedule. A
segment has a slice of each part in the schedule, so that ranks work far apart in the buffer; close together, their
processors' prefetchers would compete for cache lines.

A message becomes one access by one of its two ranks: a reduction is pulled by its destination; a copy of bytes that the
source has just reduced is pushed by the source (they are in its cache); any other copy is pulled. A rank publishes the
number of accesses it has finished. All ranks compile all programs, so each knows which number to wait for.

The accesses of a program are ordered by segment + depth (depth: number of accesses by other ranks that must come
before), so that segments follow each other through the schedule as in a pipeline. There are no deadlocks: every wait is
for a smaller segment + depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from scaleproof.collectives.message_schedule import Action, Message, messages
from scaleproof.spec.case import Operation

ACCESS_BYTES = 256 << 10
"""Size of the largest access; 128 to 512 KiB are equally fast if a core has 1 MiB of second-level cache."""
AHEAD = 2
"""Segments that a rank stages in before it needs them."""
ALIGN = 64
"""Slices of a segment start at multiples of this many elements in their block."""


_STAGE_IN, _ACCESS, _STAGE_OUT = range(3)
"""Phases, which order steps with the same segment + depth."""


class Access(NamedTuple):
    """Elements [start, stop) of a segment, moved by `rank` between itself and `peer`, for a message from `source`.

    `depth`: accesses by other ranks that must come before. `needs`: indices of accesses of this segment that must come
    before.
    """

    rank: int
    peer: int
    source: int
    start: int
    stop: int
    reduce: bool
    depth: int
    needs: tuple[int, ...]


class Wait(NamedTuple):
    """Wait until `peer` has finished `number` accesses, or with `ready` until it has `number` segments ready."""

    peer: int
    ready: bool
    number: int


class Step(NamedTuple):
    """One step of a rank: an access to elements [start, stop) of a segment, or a copy of its blocks [start, stop)
    between the user's buffer and the segment's staging slot."""

    kind: Literal["pull", "push", "reduce", "stage_in", "stage_out"]
    segment: int
    start: int
    stop: int
    peer: int
    waits: tuple[Wait, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """Division of a buffer with `blocks` equal blocks of `block` elements and a tail of `tail` elements. A segment has
    at most `width` elements of every block. The tail, which has fewer elements than there are blocks, is the last
    segment."""

    blocks: int
    block: int
    width: int
    tail: int

    @property
    def segments(self) -> int:
        return self._regular + (self.tail > 0)

    def parts(self, segment: int) -> int:
        """Number of blocks that a segment holds a slice of."""
        return self.blocks if segment < self._regular else 1

    def size(self, segment: int) -> int:
        """Elements of a segment."""
        return self.parts(segment) * self.slice(segment)

    def slice(self, segment: int) -> int:
        """Elements of a segment in each of its blocks."""
        return min(self.width, self.block - segment * self.width) if segment < self._regular else self.tail

    def position(self, segment: int, start: int) -> int:
        """Index in the buffer of element `start` of a segment; an access never crosses a block."""
        if segment == self._regular:
            return self.blocks * self.block + start
        block, rest = divmod(start, self.slice(segment))
        return block * self.block + segment * self.width + rest

    @property
    def _regular(self) -> int:
        return -(-self.block // self.width) if self.block else 0


@dataclass(frozen=True, slots=True)
class Plan:
    """One rank's program. `totals`: accesses of every rank; `touched`: peers that this rank accesses; `slots`: staging
    slots, each for one segment; `staged`: blocks of each segment that are in its slot, none if the buffer is not
    staged: peers access no others, so those stay in the user's buffer."""

    shape: Shape
    segments: int
    steps: tuple[Step, ...]
    last: tuple[Wait, ...]
    totals: tuple[int, ...]
    touched: tuple[int, ...]
    slots: int
    staged: tuple[range, ...]


@lru_cache(maxsize=256)
def compile_plan(
    algorithm: str, operation: Operation, world_size: int, count: int, itemsize: int, root: int, rank: int, staged: bool
) -> Plan:
    """The program of `rank` over a buffer of `count` elements; `staged`: the buffer is outside of the shared memory."""
    shape = _shape(algorithm, operation, world_size, count, itemsize, root)
    parts = [
        accesses(algorithm, operation, world_size, shape.size(k), root, shape.parts(k)) for k in range(shape.segments)
    ]
    # Per rank: (segment + depth, segment, index of the access in the segment).
    schedules: list[list[tuple[int, int, int]]] = [[] for _ in range(world_size)]
    for k, part in enumerate(parts):
        for index, access in enumerate(part):
            schedules[access.rank].append((k + access.depth, k, index))
    numbers: dict[tuple[int, int], int] = {}
    for order in schedules:
        order.sort()
        numbers.update({(k, index): number for number, (_, k, index) in enumerate(order, 1)})
    depth = max(access.depth for part in parts for access in part)
    keyed = [(key, _ACCESS, k, index) for key, k, index in schedules[rank]]
    if staged:
        keyed += [(k - AHEAD, _STAGE_IN, k, 0) for k in range(shape.segments)]
        keyed += [(k + depth, _STAGE_OUT, k, 0) for k in range(shape.segments)]
    in_slots = tuple(_accessed_blocks(parts[k], rank, shape.slice(k)) for k in range(shape.segments if staged else 0))
    compiler = _Compiler(rank, parts, numbers, in_slots)
    steps = tuple(compiler.step(phase, k, index) for _, phase, k, index in sorted(keyed))
    last = compiler.prune([wait for k in range(shape.segments) for wait in compiler.touches(k)])
    touched = tuple(sorted({access.peer for part in parts for access in part if access.rank == rank}))
    totals = tuple(len(order) for order in schedules)
    return Plan(shape, shape.segments, steps, last, totals, touched, depth + AHEAD + 1, in_slots)


def _accessed_blocks(part: tuple[Access, ...], rank: int, block: int) -> range:
    """The blocks from the first to the last one that other ranks access in this rank's memory, for one segment."""
    accessed = [access.start // block for access in part if access.peer == rank]
    return range(min(accessed), max(accessed) + 1) if accessed else range(0)


class _Compiler:
    """Turns one rank's ordered accesses into steps, without waits that earlier waits already imply."""

    def __init__(
        self,
        rank: int,
        parts: list[tuple[Access, ...]],
        numbers: dict[tuple[int, int], int],
        in_slots: tuple[range, ...],
    ) -> None:
        self._rank, self._parts, self._numbers, self._in_slots = rank, parts, numbers, in_slots
        self._known: dict[tuple[int, bool], int] = {}

    def step(self, phase: int, segment: int, index: int) -> Step:
        """The step of a phase; `index`: of the access in its segment."""
        part = self._parts[segment]
        if phase == _STAGE_IN:
            return Step("stage_in", segment, self._in_slots[segment].start, self._in_slots[segment].stop, -1, ())
        if phase == _STAGE_OUT:
            blocks, waits_out = self._in_slots[segment], self.prune(self.touches(segment))
            return Step("stage_out", segment, blocks.start, blocks.stop, -1, waits_out)
        access = part[index]
        waits = [
            Wait(part[need].rank, False, self._numbers[segment, need])
            for need in access.needs
            if part[need].rank != self._rank
        ]
        waits.append(Wait(access.peer, True, segment + 1))
        kind: Literal["pull", "push", "reduce"] = "push" if access.source == self._rank else "pull"
        if access.reduce:
            kind = "reduce"
        return Step(kind, segment, access.start, access.stop, access.peer, self.prune(waits))

    def touches(self, segment: int) -> list[Wait]:
        """Waits for all accesses of other ranks to this rank's memory."""
        part = self._parts[segment]
        return [
            Wait(access.rank, False, self._numbers[segment, index])
            for index, access in enumerate(part)
            if access.peer == self._rank
        ]

    def prune(self, waits: list[Wait]) -> tuple[Wait, ...]:
        """Keeps the largest number per counter, and only if it is larger than in earlier waits."""
        largest: dict[tuple[int, bool], int] = {}
        for peer, ready, number in waits:
            largest[peer, ready] = max(number, largest.get((peer, ready), 0))
        new = {key: number for key, number in largest.items() if number > self._known.get(key, 0)}
        self._known.update(new)
        return tuple(Wait(peer, ready, number) for (peer, ready), number in new.items())


@lru_cache(maxsize=256)
def accesses(
    algorithm: str, operation: Operation, world_size: int, count: int, root: int, blocks: int = 1
) -> tuple[Access, ...]:
    """All ranks' accesses for one segment, in the order of the schedule."""
    compiled: list[Access] = []
    writes: list[list[int]] = [[] for _ in range(world_size)]
    reads: list[list[int]] = [[] for _ in range(world_size)]
    for message in messages(algorithm, operation, world_size, count, root=root):
        for start, stop in _cut(message, count // blocks):
            reduced = message.action is Action.REDUCE
            push = not reduced and _just_reduced(compiled, writes[message.source], message.source, start, stop)
            rank, peer = (message.source, message.destination) if push else (message.destination, message.source)
            earlier = writes[message.source] + writes[message.destination] + reads[message.destination]
            needs = tuple(index for index in earlier if _overlaps(compiled[index], start, stop))
            depth = max((compiled[index].depth + (compiled[index].rank != rank) for index in needs), default=0)
            writes[message.destination].append(len(compiled))
            reads[message.source].append(len(compiled))
            compiled.append(Access(rank, peer, message.source, start, stop, reduced, depth, needs))
    return tuple(compiled)


def _overlaps(access: Access, start: int, stop: int) -> bool:
    return access.start < stop and start < access.stop


def _just_reduced(compiled: list[Access], writes: list[int], source: int, start: int, stop: int) -> bool:
    """Whether the latest write to [start, stop) is the source's own reduction of all of it."""
    last = next((compiled[index] for index in reversed(writes) if _overlaps(compiled[index], start, stop)), None)
    return last is not None and last.reduce and last.rank == source and last.start <= start and stop <= last.stop


def _cut(message: Message, block: int) -> list[tuple[int, int]]:
    """The message's elements, divided at the boundaries of blocks."""
    edges = [message.start, *range((message.start // block + 1) * block, message.stop, block), message.stop]
    return list(zip(edges[:-1], edges[1:], strict=True))


def _shape(algorithm: str, operation: Operation, world_size: int, count: int, itemsize: int, root: int) -> Shape:
    probe = world_size * ALIGN << world_size.bit_length()
    schedule = list(messages(algorithm, operation, world_size, probe, root=root))
    edges = {edge for message in schedule for edge in (message.start, message.stop)}
    blocks = len(edges) - 1
    block, tail = divmod(count, blocks)
    largest = max(stop - start for message in schedule for start, stop in _cut(message, probe // blocks))
    width = max(ACCESS_BYTES // itemsize * (probe // blocks) // largest // ALIGN * ALIGN, ALIGN)
    return Shape(blocks, block, width, tail)
