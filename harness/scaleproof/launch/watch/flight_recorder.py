"""The flight recorder of a launch that failed: what every rank did at the first sign, whom it waited for, and which
rank the others' waiting leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scaleproof.core.board import Line
from scaleproof.core.record_schema import RankDoing, SilenceReason, Stall
from scaleproof.launch.watch.failure_signs import BLAMES_OTHERS, Sign, Watch
from scaleproof.launch.watch.stacks import NO_STACK, Stack, read_stacks, traceback_in

ENDED = Stack(missing="the process had ended")


@dataclass(frozen=True, slots=True)
class Seen:
    """One rank as the supervisor saw it: its line on the board, s since that changed, whether its process had ended,
    and its stacks."""

    rank: int
    line: Line
    still_s: float
    ended: bool
    stack: Stack = NO_STACK

    @property
    def progress(self) -> tuple[int, int]:
        """How far it is: step, then collective calls."""
        return self.line.step, self.line.calls

    @property
    def order(self) -> tuple[int, int, float]:
        """Furthest behind first, among equals the one that has stood still for longest."""
        return *self.progress, -self.still_s


@dataclass(frozen=True, slots=True)
class Silence:
    """The rank that was silent first (-1: none), how that was decided, and the ranks of which each waited for the next
    one, to that rank."""

    rank: int
    reason: SilenceReason
    path: tuple[int, ...] = ()


def look(watch: Watch) -> list[Seen]:
    """All ranks, with the stacks of those whose process lives. Call before anything is killed."""
    seen = [Seen(rank, watch.board.read(rank), watch.still_s(rank), rank in watch.ends) for rank in watch.ranks]
    stacks = read_stacks(watch.folder, watch.living(), watch.processes)
    return [replace(each, stack=stacks.get(each.rank, NO_STACK)) for each in seen]


def look_again(watch: Watch, seen: Sequence[Seen]) -> list[Seen]:
    """What came later than the first sign: a rank may have come to wait since, or may have found that its peer was gone
    and have ended."""
    return [_later(watch, each) for each in seen]


def _later(watch: Watch, seen: Seen) -> Seen:
    line = watch.board.read(seen.rank)
    if seen.line.waits_for is None and line.waits_for is not None:
        seen = replace(seen, line=line)
    if seen.rank not in watch.ends:
        return seen
    # An exception that ended a rank is not in the stacks of before: the traceback in its log is.
    ended_well = watch.reports.get(seen.rank, {}).get("status") == "ok"
    lines = () if ended_well else traceback_in(watch.folder / f"rank-{seen.rank}.log")
    if lines:
        return replace(seen, stack=Stack(lines))
    return seen if seen.stack.lines or seen.stack.missing else replace(seen, stack=ENDED)


def stall_of(seen: Sequence[Seen], cause: Sign | None, silence: Silence | None = None) -> Stall:
    """The flight record. A rank that failed by itself is the first silent one; else the waiting leads to it.
    `silence`: what was decided already at the first look, and is told in the cause's message."""
    if silence is not None and cause is not None:
        why = cause.message
    elif cause is not None and cause.rank >= 0 and cause.code not in BLAMES_OTHERS:
        silence, why = Silence(cause.rank, "failed"), f"rank {cause.rank}: {cause.message}"
    else:
        silence = first_silent(seen, cause.rank if cause else -1)
        why = sentence(silence, seen)
    return Stall(
        first_silent=silence.rank,
        why=why + _others(silence, seen),
        ranks=[_doing(each) for each in seen],
        reason=silence.reason,
        path=list(silence.path),
    )


def _doing(seen: Seen) -> RankDoing:
    line = seen.line
    return RankDoing(
        rank=seen.rank,
        step=line.step,
        operation=f"{line.doing}, inside the library" if line.waits_for == -1 else line.doing,
        waits_for=-1 if line.waits_for is None else line.waits_for,
        still_s=round(seen.still_s, 3),
        stack=list(seen.stack.lines),
        no_stack=seen.stack.missing,
    )


def first_silent(seen: Sequence[Seen], start: int = -1) -> Silence:
    """From `start`, else from the waiting rank that is furthest behind, follow who waits for whom to the end."""
    by_rank = {each.rank: each for each in seen}
    living = [each for each in seen if not each.ended]
    waiting = [each for each in living if each.line.waits_for is not None]
    if start >= 0 and by_rank[start].line.waits_for is not None:
        path = [by_rank[start]]
    elif waiting:
        path = [min(waiting, key=lambda each: each.order)]
    elif living:
        return Silence(min(living, key=lambda each: each.order).rank, "furthest_behind")
    else:
        return Silence(-1, "all_ended")
    while (following := _waited_for(path[-1], by_rank)) is not None:
        if following in path:
            circle = path[path.index(following) :]
            slowest = min(circle, key=lambda each: each.order)
            return Silence(slowest.rank, "deadlock", tuple(each.rank for each in circle))
        path.append(following)
    return Silence(path[-1].rank, "waited_for", tuple(each.rank for each in path))


def _waited_for(seen: Seen, by_rank: dict[int, Seen]) -> Seen | None:
    """The rank that this one's waiting leads to. A library does not say whom it waits for: a rank that is behind, else
    one that does not wait."""
    peer = seen.line.waits_for
    if peer is None:
        return None
    if peer >= 0:
        return by_rank.get(peer)
    others = [other for other in by_rank.values() if other.rank != seen.rank and not other.ended]
    behind = [other for other in others if other.progress < seen.progress]
    free = [other for other in others if other.line.waits_for is None]
    return min(
        behind or free,
        key=lambda other: (*other.progress, other.line.waits_for is not None, -other.still_s),
        default=None,
    )


def sentence(silence: Silence, seen: Sequence[Seen]) -> str:
    """A silence for people."""
    by_rank = {each.rank: each for each in seen}
    if silence.reason == "all_ended":
        return "all ranks had ended"
    last = by_rank[silence.rank]
    if silence.reason == "failed":
        return f"rank {last.rank} failed, {_state(last)}"
    if silence.reason == "furthest_behind":
        return f"no rank waits for another; rank {last.rank} is furthest behind, {_state(last)}"
    if silence.reason == "deadlock":
        circle = zip(silence.path, (*silence.path[1:], silence.path[0]), strict=True)
        return "deadlock: " + ", ".join(
            f"rank {rank} ({by_rank[rank].line.doing or 'nothing named'}) waits for rank {following}"
            for rank, following in circle
        )
    links = [
        f"rank {rank} waits for rank {following}"
        for rank, following in zip(silence.path, silence.path[1:], strict=False)
    ]
    return ", ".join([*links, _end_of_path(last)])


def _end_of_path(last: Seen) -> str:
    if last.ended:
        return f"rank {last.rank} had ended; its last line: {_state(last)}"
    if last.line.waits_for is None:
        return f"rank {last.rank} waits for nobody, {_state(last)}"
    return (
        f"rank {last.rank} waits inside a library, {_state(last)}, and no rank is behind it: "
        "the library or the network does not move"
    )


def _others(silence: Silence, seen: Sequence[Seen]) -> str:
    """Who waited for the first silent rank, where the sentence about it names no waiting yet."""
    if silence.reason not in ("failed", "waited_for") or len(silence.path) > 1:
        return ""
    others = [each for each in seen if each.rank != silence.rank]
    waiting = [each.rank for each in others if each.line.waits_for == silence.rank]
    inside = [each.rank for each in others if each.line.waits_for == -1]
    words = f"; {_ranks(waiting)} waited for it" if waiting else ""
    return words + (f"; {_ranks(inside)} waited inside a library" if inside else "")


def _state(seen: Seen) -> str:
    where = f"in {seen.line.doing!r}" if seen.line.doing else "before its first operation"
    return f"step {seen.line.step}, {where} for {seen.still_s:.1f} s"


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else "ranks " + ", ".join(map(str, ranks))
