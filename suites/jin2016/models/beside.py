"""Asynchronous arms beside all-reduce on as many ranks, in launches of one seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from scaleproof.claims.finished_launch import Launch

ALL_REDUCE = "all_reduce"
"""The synchronous arm; all others of an experiment are asynchronous."""
FAR = 10.0
"""No ratio counts as more, or as less than one of it."""
ByRanks = dict[int, float]
Value = float | None


def beside_all_reduce(
    block: Sequence[Launch], value_of: Callable[[Launch], Value], compared: Callable[[Value, Value], Value]
) -> dict[str, ByRanks]:
    """Of each asynchronous arm and number of ranks: its value compared with that of all-reduce on as many."""
    values: dict[str, dict[int, Value]] = {}
    for launch in block:
        case = launch.record.case
        values.setdefault(case.arm, {})[case.ranks] = value_of(launch)
    base = values.pop(ALL_REDUCE, {})
    found: dict[str, ByRanks] = {}
    for arm, by_ranks in values.items():
        for ranks in sorted(by_ranks.keys() & base.keys()):
            if (value := compared(by_ranks[ranks], base[ranks])) is not None:
                found.setdefault(arm, {})[ranks] = value
    return found


def every_value(found: Mapping[str, ByRanks]) -> list[float]:
    """Of all arms and numbers of ranks."""
    return [value for by_ranks in found.values() for value in by_ranks.values()]
