"""One rank's end for the record: from its exit file, its report and its line on the board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from scaleproof.core.killed_rank import is_gone
from scaleproof.core.record_schema import Clock, FailureCode, RankStatus
from scaleproof.launch.finish.rank_agreement import own
from scaleproof.launch.finish.validity import per_rank
from scaleproof.launch.watch.failure_signs import Watch, signal_name
from scaleproof.record.private_paths import without_private_paths


def rank_status(rank: int, watch: Watch, shared: Mapping[str, Mapping[str, Any]]) -> RankStatus:
    """`shared`: facts that are equal on all ranks and that the record keeps once. A rank without an exit file was ended
    by the supervisor."""
    end, report, line = watch.ends.get(rank), watch.reports.get(rank), watch.board.read(rank)
    facts = report["facts"] if report else {}
    facts = {key: value for key, value in facts.items() if key not in ("traffic", "transport")}
    facts |= {name: own(facts, name, values) for name, values in shared.items() if name in facts}
    return RankStatus(
        rank=rank,
        pid=watch.board.pid(rank),
        exit_code=end["exit_code"] if end else None,
        signal=end["signal"] if end else None,
        status=_status(end, report),
        code=known_code(report["code"]) if report and report["code"] else None,
        message="killed by a fault of the case" if is_gone(watch.folder, rank) else _message(end, report),
        step=line.step,
        operation=line.operation,
        facts=without_private_paths(facts),
    )


def known_code(code: str) -> FailureCode:
    """A code that a rank reported, `rank_raised` where it is none of the record's."""
    failure_code: FailureCode = code if code in get_args(FailureCode) else "rank_raised"  # type: ignore[assignment]
    return failure_code


def _status(end: Mapping[str, Any] | None, report: Mapping[str, Any] | None) -> Literal["ok", "failed", "killed"]:
    if end is None or end["signal"] is not None:
        return "killed"
    if report is not None and report["status"] == "ok" and end["exit_code"] == 0:
        return "ok"
    return "failed"


def _message(end: Mapping[str, Any] | None, report: Mapping[str, Any] | None) -> str:
    if report is not None:
        return str(report["message"])
    return f"killed by {signal_name(end['signal'])}" if end is not None and end["signal"] else ""


def rank_clocks(watch: Watch) -> list[Clock]:
    """Each rank's clock against rank 0's, where they were compared."""
    return [
        Clock(rank=rank, offset_ns=clock["offset_ns"], uncertainty_ns=clock["uncertainty_ns"])
        for rank, clock in enumerate(per_rank(watch, "clock"))
        if clock
    ]
