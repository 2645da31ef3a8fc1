"""Where the time of a step goes on ranks at their own pace. No rank waits for all others, unless it says so: what it
waits for follows from its effects (docs/decomposition.md)."""

from __future__ import annotations

from functools import partial

import numpy as np

from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, MakeUp, Wanted, events, possible
from scaleproof.claims.sample_columns import Columns
from scaleproof.claims.step_layers import NOTHING, joined, late, spans
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase
from scaleproof.stats.interval_union import Intervals

MAIN = ("forward", "backward", "update", "input")
"""Parts on the main thread; a moment of two of them belongs to the first."""
WAITS = ("wait_for_peer", "wait_for_server", "wait_at_barrier")
DELAYED = "delayed"
PARTS = ("input", "forward", "backward", "update", "exposed_transfer", *WAITS, DELAYED, "other")
"""In the order in which they are shown."""
LABELS = (*MAIN, DELAYED, "wait_at_barrier", "wait_for_server", "wait_for_peer", "exposed_transfer", "other")
"""A moment of two of them belongs to the first."""
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
ASKING = ("wait", "call", "get", "swap")
"""Events that last until another rank has answered or sent; `value`: which one."""
SENDING = ("send", "put", "control", *COLLECTIVES)
SECOND = 1e9


def layers_of(record: Record, case: TrainCase, rows: Columns) -> dict[int, list[Intervals]]:
    """Intervals of LABELS but the last, by rank that trains."""
    servers = case.ranks - case.workers
    asking = rows.timed(*ASKING)
    asked = rows.value[asking]
    from_server = asking[asked < servers]
    from_peer = asking[~(asked < servers)]  # also where nothing says it: for a flag, for an effect on another lane
    traits = case.replicas
    lockstep = traits is not None and traits.pace == "lockstep"
    meeting = late(record, rows, *COLLECTIVES) if lockstep else {}
    barriers = _barriers(rows)
    plain = spans(rows, rows.timed(*MAIN, "delay", *SENDING))
    server, peer = _by_rank(rows, from_server), _by_rank(rows, from_peer)

    def of(rank: int, *names: str) -> Intervals:
        return joined([plain.get((rank, name), NOTHING) for name in names])

    return {
        rank: [
            *(of(rank, name) for name in (*MAIN, "delay")),
            joined([barriers.get(rank, NOTHING), meeting.get(rank, NOTHING)]),
            server.get(rank, NOTHING),
            peer.get(rank, NOTHING),
            of(rank, *SENDING),
        ]
        for rank in range(servers, case.ranks)
    }


def _by_rank(rows: Columns, chosen: np.ndarray) -> dict[int, Intervals]:
    return {
        int(rank): (rows.start[chosen[rows.rank[chosen] == rank]], rows.end[chosen[rows.rank[chosen] == rank]])
        for rank in np.unique(rows.rank[chosen])
    }


def _barriers(rows: Columns) -> dict[int, Intervals]:
    """A barrier is recorded at its end, with its length in s."""
    chosen = rows.timed("barrier_s")
    ends = rows.end[chosen].astype(np.int64)
    starts = ends - np.rint(rows.value[chosen] * SECOND).astype(np.int64)
    ranks = rows.rank[chosen]
    return {int(rank): (starts[ranks == rank], ends[ranks == rank]) for rank in np.unique(ranks)}


def making(part: str) -> MakeUp:
    """Launches whose ranks wait for so long in each step, or are delayed."""
    return partial(_making, part=part)


def _making(wanted: Wanted, part: str) -> MadeUp:
    case, seconds = wanted.case, possible(wanted.known)
    if not isinstance(case, TrainCase) or case.replicas is None:
        raise ImpossibleValue("the strategy of this case is no program of each rank")
    servers = case.ranks - case.workers
    workers = tuple(range(servers, case.ranks))
    if part == "wait_for_server" and not servers:
        raise ImpossibleValue("there is no server")
    wait = {
        "wait_for_peer": Event("wait", 0.0, seconds, ranks=workers, value=float(servers)),
        "wait_for_server": Event("wait", 0.0, seconds, ranks=workers, value=0.0),
        "wait_at_barrier": Event("barrier_s", seconds, seconds, ranks=workers, value=seconds),
        DELAYED: Event("delay", 0.0, seconds, ranks=workers),
    }[part]
    return events(Event("step", 0.0, 1.0 + seconds, ranks=workers), wait)


PAGES = {
    "wait_for_peer_s": """
        wait_for_peer_s = time per step in which a rank waits for a message or an answer of another rank that trains,
        and nothing else of its step runs

        Mean over the timed steps of all ranks that train, of strategies whose ranks go at their own pace. The time of
        the message itself is in it: such a rank does not know when its peer began to send. Waiting for a flag that a
        peer raises counts too. Formula and limits: docs/decomposition.md.
        """,
    "wait_for_server_s": """
        wait_for_server_s = time per step in which a rank waits for a message or an answer of a rank that only serves,
        and nothing else of its step runs

        Mean over the timed steps of all ranks that train, of strategies with dedicated servers. What the server does
        meanwhile (it updates, or it lets a worker wait that is too far ahead) and the time of the messages are in it.
        Formula and limits: docs/decomposition.md.
        """,
    "wait_at_barrier_s": """
        wait_at_barrier_s = time per step that a rank spends at a barrier, and nothing else of its step runs

        Mean over the timed steps of all ranks that train. A strategy with barriers says how long each took (event
        `barrier_s`), with the questions to peers and the sleeps between them. In strategies whose ranks go in lockstep
        with collectives, it is the time in which a collective runs and another rank has not begun it.
        Formula and limits: docs/decomposition.md.
        """,
    "delayed_s": """
        delayed_s = time per step of the delays that the case asks for (`step_delay`, `message_delay`), where nothing
        else of the step runs

        Mean over the timed steps of all ranks that train.
        """,
}
"""Text of the metrics' pages."""
