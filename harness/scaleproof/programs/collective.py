"""Sweep of one collective operation over sizes. A size is the bytes of the whole array, as in nccl-tests. A sample is
one call on one rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scaleproof.collectives.group import open_group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.core.transport_errors import TransportError
from scaleproof.programs.common import first_use, repetitions, timed_iterations, timed_region
from scaleproof.programs.handicap import finished
from scaleproof.programs.payload import differing, pattern
from scaleproof.spec.case import CollectiveCase
from scaleproof.spec.emulated import shrunk
from scaleproof.spec.plugins import ProgramPlugin
from scaleproof.transports.contract import Array, Collectives

IN_PLACE = ("all_reduce", "broadcast")


@dataclass(frozen=True, slots=True)
class Call:
    """One operation on prepared buffers: `source` is a rank's input, `target` its result (the same array if the
    operation is in place)."""

    source: Array
    target: Array
    start: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Memory:
    """The transport's memory for the largest size; smaller sizes use the start of it. `full`: a whole array; `piece`:
    one rank's part of it (empty if the operation is in place)."""

    full: Array
    piece: Array

    @classmethod
    def of(cls, group: Collectives, case: CollectiveCase) -> Memory:
        """Allocates the memory of a case."""
        dtype = np.dtype(case.dtype)
        elements = shrunk(max(case.sizes), case.shrink) // dtype.itemsize
        share = 0 if case.operation in IN_PLACE else elements // group.world_size
        full, piece = (group.allocate(count * dtype.itemsize).view(dtype) for count in (elements, share))
        return cls(full, piece)


def run(context: RankContext) -> None:
    """For every size: a verified call, warm-up, timed calls, each after a barrier, and another verified call."""
    case = context.case
    assert isinstance(case, CollectiveCase)
    group = open_group(context)
    with timed_region(context, group):
        sweep(context, case, group)


def sweep(context: RankContext, case: CollectiveCase, group: Collectives) -> None:
    """All sizes of a case over an open group. Raises TransportError for a type of element that it does not reduce."""
    if case.dtype not in group.capabilities.dtypes:
        raise TransportError(
            f"transport {case.transport!r} does not reduce {case.dtype}; it reduces "
            f"{', '.join(sorted(group.capabilities.dtypes))}"
        )
    memory = Memory.of(group, case)
    for nbytes in case.sizes:
        _size(context, case, group, memory, nbytes)


def _size(context: RankContext, case: CollectiveCase, group: Collectives, memory: Memory, nbytes: int) -> None:
    call = prepare(group, case, memory, shrunk(nbytes, case.shrink))
    moved = max(call.source.nbytes, call.target.nbytes)
    _fill(context, case, call, 1)
    group.barrier()
    with first_use(context, moved):
        call.start()
    _verify(context, case, call, nbytes, 1)
    # Zeros stay zeros under repeated sums: timed values neither overflow nor change between calls.
    call.source.fill(0)
    for iteration in timed_iterations(context, case.warmup, repetitions(case, nbytes)):
        context.at(iteration, f"barrier before {case.operation} {nbytes} B")
        group.barrier()
        context.at(iteration, f"{case.operation} {nbytes} B")
        start = now()
        call.start()
        context.recorder.add(case.operation, iteration, start, finished(start, case.handicap), moved)
    _fill(context, case, call, 2)
    call.start()
    _verify(context, case, call, nbytes, 2)


def prepare(group: Collectives, case: CollectiveCase, memory: Memory, nbytes: int) -> Call:
    """The call of one size. The size is rounded down to whole elements (and equal parts of the ranks), as in
    nccl-tests."""
    dtype, world_size = np.dtype(case.dtype), group.world_size
    share = nbytes // (dtype.itemsize * world_size)
    if case.operation in IN_PLACE:
        buffer = memory.full[: nbytes // dtype.itemsize]
        if case.operation == "all_reduce":
            return Call(buffer, buffer, lambda: group.all_reduce(buffer).wait())
        return Call(buffer, buffer, lambda: group.broadcast(buffer, 0).wait())
    piece, full = memory.piece[:share], memory.full[: share * world_size]
    if case.operation == "all_gather":
        return Call(piece, full, lambda: group.all_gather(piece, full).wait())
    return Call(full, piece, lambda: group.reduce_scatter(full, piece).wait())


def expected(case: CollectiveCase, call: Call, rank: int, salt: int) -> np.ndarray:
    """The expected content of `target`, computed with NumPy, if the input of rank r is `pattern(..., salt + r)`."""
    sources = [pattern(call.source.size, case.dtype, salt + peer) for peer in range(case.ranks)]
    if case.operation == "broadcast":
        return sources[0]
    if case.operation == "all_gather":
        return np.concatenate(sources)
    total = sources[0]
    for other in sources[1:]:
        total += other
    return total if case.operation == "all_reduce" else total[rank * call.target.size : (rank + 1) * call.target.size]


def _fill(context: RankContext, case: CollectiveCase, call: Call, salt: int) -> None:
    call.target.fill(0)
    call.source[:] = pattern(call.source.size, case.dtype, salt + context.rank)


def _verify(context: RankContext, case: CollectiveCase, call: Call, nbytes: int, salt: int) -> None:
    wrong = differing(call.target, expected(case, call, context.rank, salt))
    detail = f"{wrong} of {call.target.size} elements differ from NumPy's" if wrong else "equal to NumPy's"
    context.check(f"{case.operation}.{nbytes}.{salt}", not wrong, detail)


PLUGIN = ProgramPlugin(
    name="collective",
    summary="sweep of one collective operation over sizes",
    implementation=run,
    case=CollectiveCase,
)
