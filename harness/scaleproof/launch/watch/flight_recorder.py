"""The flight recorder of a launch that failed: what every rank did at the first sign, whom it waited for, and which
rank the others' waiting leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from scaleproof.core.board import Line
from scaleproof.core.record_schema import RankDoing, Stall
from scaleproof.launch.watch.ranks import BLAMES_OTHERS, Sign, Watch
from scaleproof.launch.watch.stacks import last_words, take

NOBODY_FAILED = ("deadline", "stalled")
"""Failures of the launch as a whole: their rank and message come from the waiting already."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One rank as the supervisor saw it: its last words, s since they last changed, whether its process had ended, and
    its stacks."""

    rank: int
    line: Line
    still_s: float
    ended: bool
    stack: list[str] = field(default_factory=list)

    @property
    def progress(self) -> tuple[int, int]:
        """How far it is: step, then collective calls."""
        return self.line.step, self.line.calls

    @property
    def order(self) -> tuple[int, int, float]:
        """Furthest behind first, among equals the one that has stood still for longest."""
        return *self.progress, -self.still_s


def look(watch: Watch) -> list[Seen]:
    """All ranks, with the stacks of those whose process lives. Call before anything is killed."""
    seen = [Seen(rank, watch.board.read(rank), watch.still_s(rank), rank in watch.ends) for rank in watch.ranks]
    stacks = take(watch.folder, watch.living(), watch.processes)
    return [replace(one, stack=stacks.get(one.rank, [])) for one in seen]


def look_again(watch: Watch, seen: Sequence[Seen]) -> list[Seen]:
    """What came later than the first sign: a rank may have come to wait since, or may have found that its peer was gone
    and have ended."""
    return [_later(watch, one) for one in seen]


def _later(watch: Watch, one: Seen) -> Seen:
    line = watch.board.read(one.rank)
    if one.line.waits_for is None and line.waits_for is not None:
        one = replace(one, line=line)
    if one.rank in watch.ends:
        # A rank that an exception ended was asked for its stacks when it had left the place; its traceback has it.
        well = watch.reports.get(one.rank, {}).get("status") == "ok"
        words = [] if well else last_words(watch.folder / f"rank-{one.rank}.log")
        one = replace(one, stack=words or one.stack or ["no stack: the process had ended"])
    return one


def stall_of(seen: Sequence[Seen], cause: Sign | None) -> Stall:
    """What the record keeps. A rank that failed by itself is the first silent one; else the waiting leads to it."""
    if cause is not None and cause.code in NOBODY_FAILED:
        rank, why = cause.rank, cause.message
    elif cause is not None and cause.rank >= 0 and cause.code not in BLAMES_OTHERS:
        rank, why = cause.rank, f"rank {cause.rank}: {cause.message}"
    else:
        rank, why = first_silent(seen, cause.rank if cause else -1)
    waiting = [one.rank for one in seen if one.rank != rank and one.line.waits_for == rank]
    inside = [one.rank for one in seen if one.rank != rank and one.line.waits_for == -1]
    if "waits for" not in why:
        why += f"; {_ranks(waiting)} waited for it" if waiting else ""
        why += f"; {_ranks(inside)} waited inside a library" if inside else ""
    return Stall(first_silent=rank, why=why, ranks=[_doing(one) for one in seen])


def _doing(one: Seen) -> RankDoing:
    line = one.line
    waits_for = -1 if line.waits_for is None else line.waits_for
    operation = f"{line.doing}, inside the library" if line.waits_for == -1 else line.doing
    return RankDoing(
        rank=one.rank,
        step=line.step,
        operation=operation,
        waits_for=waits_for,
        still_s=round(one.still_s, 3),
        stack=one.stack,
    )


def first_silent(seen: Sequence[Seen], start: int = -1) -> tuple[int, str]:
    """From `start`, else from the waiting rank that is furthest behind, follow who waits for whom; returns the rank
    where it ends, and why in words."""
    by_rank = {one.rank: one for one in seen}
    living = [one for one in seen if not one.ended]
    waiting = [one for one in living if one.line.waits_for is not None]
    if start >= 0 and by_rank[start].line.waits_for is not None:
        path = [by_rank[start]]
    elif waiting:
        path = [min(waiting, key=lambda one: one.order)]
    elif living:
        one = min(living, key=lambda one: one.order)
        return one.rank, f"no rank waits for another; rank {one.rank} is furthest behind, {_state(one)}"
    else:
        return -1, "all ranks had ended"
    while (following := _waited_for(path[-1], by_rank)) is not None:
        if following in path:
            return _deadlock(path[path.index(following) :])
        path.append(following)
    return path[-1].rank, _chain(path)


def _waited_for(one: Seen, by_rank: dict[int, Seen]) -> Seen | None:
    """The rank that this one's waiting leads to. A library does not say whom it waits for: a rank that is behind, else
    one that does not wait."""
    peer = one.line.waits_for
    if peer is None:
        return None
    if peer >= 0:
        return by_rank.get(peer)
    others = [other for other in by_rank.values() if other.rank != one.rank and not other.ended]
    behind = [other for other in others if other.progress < one.progress]
    free = [other for other in others if other.line.waits_for is None]
    return min(
        behind or free,
        key=lambda other: (*other.progress, other.line.waits_for is not None, -other.still_s),
        default=None,
    )


def _deadlock(cycle: list[Seen]) -> tuple[int, str]:
    links = ", ".join(
        f"rank {one.rank} ({one.line.doing or 'nothing named'}) waits for rank {cycle[(index + 1) % len(cycle)].rank}"
        for index, one in enumerate(cycle)
    )
    return min(cycle, key=lambda one: one.order).rank, f"deadlock: {links}"


def _chain(path: list[Seen]) -> str:
    last = path[-1]
    words = ", ".join(
        f"rank {one.rank} waits for rank {following.rank}" for one, following in zip(path, path[1:], strict=False)
    )
    if last.ended:
        end = f"rank {last.rank} had ended, its last words: {_state(last)}"
    elif last.line.waits_for is None:
        end = f"rank {last.rank} waits for nobody, {_state(last)}"
    else:
        end = f"rank {last.rank} waits inside a library, {_state(last)}, and no rank is behind it: the library or the network stands"
    return ", ".join(filter(None, (words, end)))


def _state(one: Seen) -> str:
    where = f"in {one.line.doing!r}" if one.line.doing else "before its first operation"
    return f"step {one.line.step}, {where} for {one.still_s:.1f} s"


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else "ranks " + ", ".join(map(str, ranks))
