"""The flight recorder of a launch that failed: what every rank did at the first sign of failure, which rank it waited
for, and the rank at the end of the chain of waiting ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scaleproof.core.board import Line
from scaleproof.core.stall_schema import RankDoing, SilenceReason, Stall
from scaleproof.launch.watch.failure_signs import BLAMES_OTHERS, Sign, Watch
from scaleproof.launch.watch.stacks import NO_STACK, Stack, read_stacks, traceback_in

ENDED = Stack(missing="the process had ended")


@dataclass(frozen=True, slots=True)
class RankSnapshot:
    """One rank at one moment: its line on the board, seconds since that line changed, whether its process had ended,
    and its stacks."""

    rank: int
    line: Line
    still_s: float
    ended: bool
    stack: Stack = NO_STACK

    @property
    def progress(self) -> tuple[int, int]:
        """How far the rank is: step, then collective calls."""
        return self.line.step, self.line.calls

    @property
    def order(self) -> tuple[int, int, float]:
        """Sort key: the rank that is furthest behind first, among equals the one that has stood still for longest."""
        return *self.progress, -self.still_s


@dataclass(frozen=True, slots=True)
class Silence:
    """The rank that was silent first (-1: none), how that was decided, and the path to it: ranks of which each waited
    for the next."""

    rank: int
    reason: SilenceReason
    path: tuple[int, ...] = ()


def take_snapshots(watch: Watch) -> list[RankSnapshot]:
    """All ranks, with the stacks of those whose process lives. Call it before any process is killed."""
    snapshots = [
        RankSnapshot(rank, watch.board.read(rank), watch.still_s(rank), rank in watch.ends) for rank in watch.ranks
    ]
    stacks = read_stacks(watch.folder, watch.living(), watch.processes)
    return [replace(snapshot, stack=stacks.get(snapshot.rank, NO_STACK)) for snapshot in snapshots]


def look_again(watch: Watch, snapshots: Sequence[RankSnapshot]) -> list[RankSnapshot]:
    """The snapshots with what happened since: a rank may have begun to wait, or may have ended since its peer was
    gone."""
    return [_updated(watch, snapshot) for snapshot in snapshots]


def _updated(watch: Watch, snapshot: RankSnapshot) -> RankSnapshot:
    line = watch.board.read(snapshot.rank)
    if snapshot.line.waits_for is None and line.waits_for is not None:
        snapshot = replace(snapshot, line=line)
    if snapshot.rank not in watch.ends:
        return snapshot
    # The earlier stacks do not show an exception that ended a rank; the traceback in its log does.
    ended_well = watch.reports.get(snapshot.rank, {}).get("status") == "ok"
    lines = () if ended_well else traceback_in(watch.folder / f"rank-{snapshot.rank}.log")
    if lines:
        return replace(snapshot, stack=Stack(lines))
    return snapshot if snapshot.stack.lines or snapshot.stack.missing else replace(snapshot, stack=ENDED)


def stall_of(snapshots: Sequence[RankSnapshot], cause: Sign | None, silence: Silence | None = None) -> Stall:
    """The flight record. A rank that failed by itself is the first silent one; else the chain of waiting ranks leads to
    it. `silence`: the decision made with the first snapshots, which the cause's message describes."""
    if silence is not None and cause is not None:
        why = cause.message
    elif cause is not None and cause.rank >= 0 and cause.code not in BLAMES_OTHERS:
        silence, why = Silence(cause.rank, "failed"), f"rank {cause.rank}: {cause.message}"
    else:
        silence = first_silent(snapshots, cause.rank if cause else -1)
        why = sentence(silence, snapshots)
    return Stall(
        first_silent=silence.rank,
        why=why + _others(silence, snapshots),
        ranks=[_doing(snapshot) for snapshot in snapshots],
        reason=silence.reason,
        path=list(silence.path),
    )


def _doing(snapshot: RankSnapshot) -> RankDoing:
    line = snapshot.line
    return RankDoing(
        rank=snapshot.rank,
        step=line.step,
        operation=f"{line.doing}, inside the library" if line.waits_for == -1 else line.doing,
        waits_for=-1 if line.waits_for is None else line.waits_for,
        still_s=round(snapshot.still_s, 3),
        stack=list(snapshot.stack.lines),
        no_stack=snapshot.stack.missing,
    )


def first_silent(snapshots: Sequence[RankSnapshot], start: int = -1) -> Silence:
    """The end of the chain of waiting ranks that begins at `start`, else at the waiting rank that is furthest
    behind."""
    by_rank = {snapshot.rank: snapshot for snapshot in snapshots}
    living = [each for each in snapshots if not each.ended]
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


def _waited_for(snapshot: RankSnapshot, by_rank: dict[int, RankSnapshot]) -> RankSnapshot | None:
    """The rank that this rank waits for. A library does not say which one it is: then a rank that is behind, else one
    that does not wait."""
    peer = snapshot.line.waits_for
    if peer is None:
        return None
    if peer >= 0:
        return by_rank.get(peer)
    others = [other for other in by_rank.values() if other.rank != snapshot.rank and not other.ended]
    behind = [other for other in others if other.progress < snapshot.progress]
    free = [other for other in others if other.line.waits_for is None]
    return min(
        behind or free,
        key=lambda other: (*other.progress, other.line.waits_for is not None, -other.still_s),
        default=None,
    )


def sentence(silence: Silence, snapshots: Sequence[RankSnapshot]) -> str:
    """A silence for people."""
    by_rank = {snapshot.rank: snapshot for snapshot in snapshots}
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


def _end_of_path(last: RankSnapshot) -> str:
    if last.ended:
        return f"rank {last.rank} had ended; its last line: {_state(last)}"
    if last.line.waits_for is None:
        return f"rank {last.rank} waits for nobody, {_state(last)}"
    return (
        f"rank {last.rank} waits inside a library, {_state(last)}, and no rank is behind it: "
        "the library or the network does not move"
    )


def _others(silence: Silence, snapshots: Sequence[RankSnapshot]) -> str:
    """Which ranks waited for the first silent rank, where the sentence about that rank does not say so already."""
    if silence.reason not in ("failed", "waited_for") or len(silence.path) > 1:
        return ""
    others = [each for each in snapshots if each.rank != silence.rank]
    waiting = [each.rank for each in others if each.line.waits_for == silence.rank]
    inside = [each.rank for each in others if each.line.waits_for == -1]
    by_name = f"; {_ranks(waiting)} waited for it" if waiting else ""
    return by_name + (f"; {_ranks(inside)} waited inside a library" if inside else "")


def _state(snapshot: RankSnapshot) -> str:
    operation = f"in {snapshot.line.doing!r}" if snapshot.line.doing else "before its first operation"
    return f"step {snapshot.line.step}, {operation} for {snapshot.still_s:.1f} s"


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else "ranks " + ", ".join(map(str, ranks))
