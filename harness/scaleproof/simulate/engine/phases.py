"""Rounds of collective calls, as the event engine's users describe them and as rows for compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.engine.growing import new_rows
from scaleproof.simulate.engine.tables import PHASES, RANK_ROUNDS, ROUND_MESSAGES, Schedules


@dataclass(frozen=True)
class Phase:
    """A round of a collective call that is repeated `times`, for all its ranks. `sends`: number of messages that each
    rank sends; `receives`: that it receives; `work`: s that it works after that. Of all messages, in the order of
    their senders: `destination`, `nbytes`, `highest` bytes/s, `delay` in s, `route`, `stream` (-1: none), and bytes
    that the sender can `buffer`: a message that does not fit is sent when it has arrived, a longer one waits for its
    receiver. `core`: routes of the ranks' work, where it shares cores, `speed` of which are a second (none: it shares
    nothing)."""

    times: int
    sends: np.ndarray
    receives: np.ndarray
    work: np.ndarray
    destination: np.ndarray
    nbytes: np.ndarray
    highest: np.ndarray
    delay: np.ndarray
    route: np.ndarray
    stream: np.ndarray
    buffer: np.ndarray
    core: np.ndarray | None = field(default=None, kw_only=True)
    speed: float = field(default=1.0, kw_only=True)


def before_messages(ranks: int, seconds: float) -> list[Phase]:
    """What each rank does before the first message of a call; empty where that takes no time."""
    if not seconds:
        return []
    counts, none, numbers = np.zeros(ranks, np.int64), np.zeros(0), np.zeros(0, np.int64)
    return [
        Phase(
            1,
            sends=counts,
            receives=counts,
            work=np.full(ranks, seconds),
            destination=numbers,
            nbytes=none,
            highest=none,
            delay=none,
            route=numbers,
            stream=numbers,
            buffer=none,
        )
    ]


def schedule_rows(schedules: Sequence[tuple[Phase, ...]]) -> Schedules:
    """All schedules in rows."""
    phases = [phase for schedule in schedules for phase in schedule]

    def joined(name: str) -> np.ndarray:
        return np.concatenate([np.zeros(0), *(getattr(phase, name) for phase in phases)])

    rows = new_rows(len(phases), PHASES)
    rows.times = [phase.times for phase in phases]
    rows.row = np.cumsum([0, *(len(phase.sends) for phase in phases)])[:-1]
    sends = np.cumsum([0, *joined("sends")])
    ranks, messages = new_rows(len(sends), RANK_ROUNDS), new_rows(len(joined("nbytes")), ROUND_MESSAGES)
    ranks.sends, ranks.receives[:-1], ranks.work[:-1] = sends, joined("receives"), joined("work")
    first = 0
    for phase in phases:
        own = slice(first, first := first + len(phase.sends))
        ranks.core[own], ranks.speed[own] = NONE if phase.core is None else phase.core, phase.speed
    for name in ROUND_MESSAGES.names or ():
        messages[name] = joined(name)
    return Schedules(np.cumsum([0, *(len(schedule) for schedule in schedules)]), rows, ranks, messages)
