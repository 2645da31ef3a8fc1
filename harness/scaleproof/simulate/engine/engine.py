"""The event engine for its users: tasks of all ranks with what they wait for, lanes, routes, collective calls. All
times are in seconds of one clock."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import is_not
from typing import Any

import numpy as np

from scaleproof.simulate.engine import event_loop, held_state
from scaleproof.simulate.engine.event_queue import new_queue, with_room
from scaleproof.simulate.engine.flow_network import FREE, HOPS, NONE, new_network, resized
from scaleproof.simulate.engine.growing import START, Growing
from scaleproof.simulate.engine.held_state import HeldState
from scaleproof.simulate.engine.phases import Phase, schedule_rows
from scaleproof.simulate.engine.route_table import RouteTable
from scaleproof.simulate.engine.tables import (
    ANY,
    BOXES,
    CALL,
    EDGES,
    FREE_MESSAGES,
    LANES,
    PARTICIPANTS,
    RECEIVE,
    REPORTED,
    SEND,
    STREAMS,
    TASKS,
    TRANSFER,
    WORK,
    Schedules,
    State,
    grown_messages,
    new_messages,
)

Numbers = np.ndarray | Sequence[float] | float
NEW_TASK: dict[str, Any] = {
    "missing": 1,
    "edge": NONE,
    "last_edge": NONE,
    "began_edge": NONE,
    "behind": NONE,
    "start": np.nan,
    "end": np.nan,
}


class Engine:
    """Links, and what moves over them and is computed beside them. `capacities`: bytes/s of each directed link."""

    def __init__(self, capacities: Sequence[float] | np.ndarray) -> None:
        self._capacities = np.asarray(capacities, np.float64)
        self._limited: list[bool] = np.isfinite(self._capacities).tolist()
        self._tasks, self._edges = Growing(TASKS, usual=NEW_TASK), Growing(EDGES)
        self._lanes, self._participants = Growing(LANES), Growing(PARTICIPANTS)
        self._streams, self._boxes = Growing(STREAMS), Growing(BOXES)
        self._routes = RouteTable()
        self._schedules: list[tuple[Phase, ...]] = []
        self._schedule_rows = schedule_rows([])
        self._network = new_network(self._capacities, 1, START)
        self._reports, self._clock = np.zeros(START, np.int64), np.zeros(2)
        self._queue, self._messages = new_queue(START, self._clock), new_messages(START)
        self._counts = np.array([0, 0, START])
        self._margin = 1
        self._holds: tuple[Any, ...] | None = None
        self._kept: HeldState

    @property
    def now(self) -> float:
        """The time of the clock, in s."""
        return float(self._clock[0])

    @property
    def next(self) -> float:
        """When the first event happens, if the last `run` has returned nothing and no task was added since then."""
        return float(self._clock[1])

    @property
    def start(self) -> np.ndarray:
        """When each task started; NaN: it has not."""
        started: np.ndarray = self._tasks.rows["start"][: self._tasks.count]
        return started

    @property
    def end(self) -> np.ndarray:
        """When each task ended; NaN: it has not."""
        ended: np.ndarray = self._tasks.rows["end"][: self._tasks.count]
        return ended

    def lanes(self, count: int) -> np.ndarray:
        """Numbers of new lanes, each of which carries one task at a time."""
        added = self._lanes.add(count, busy=NONE, head=NONE, tail=NONE)
        return np.arange(added.start, added.stop)

    def route(self, links: Sequence[int], weights: Sequence[float] = ()) -> int:
        """The number of a route; one byte/s on it uses 1 byte/s, or `weights`, of the links' capacities. Links without
        a limit are left out."""
        shares = tuple(weights) or (1.0,) * len(links)
        limited = [self._limited[link] for link in links]
        if not all(limited):
            links, shares = tuple(compress(links, limited)), tuple(compress(shares, limited))
        number = self._routes.number(links, shares)
        if self._routes.most_hops > int(self._network.counts[HOPS]):
            self._network = resized(self._network, self._routes.most_hops, len(self._network.flows))
        return number

    def streams(self, count: int) -> np.ndarray:
        """Numbers of new connections, on each of which messages of calls arrive in their order."""
        added = self._streams.add(count, moving=NONE, head=NONE, tail=NONE)
        return np.arange(added.start, added.stop)

    def boxes(self, count: int) -> np.ndarray:
        """Numbers of new boxes, in each of which messages and receives meet in their order."""
        added = self._boxes.add(count, receive=NONE, last_receive=NONE, message=NONE, last_message=NONE)
        return np.arange(added.start, added.stop)

    def work(
        self, seconds: Numbers, *, count: int = 1, lane: Numbers = NONE, watched: bool = False, held: bool = False
    ) -> np.ndarray:
        """Tasks that take a time and keep their lane (-1: none) busy. `held`: until `release`, too."""
        return self.add(count, kind=WORK, lane=lane, amount=seconds, watched=watched, missing=1 + held)

    def transfer(
        self,
        route: Numbers,
        nbytes: Numbers,
        *,
        count: int = 1,
        highest: Numbers = np.inf,
        delay: Numbers = 0.0,
        lane: Numbers = NONE,
        watched: bool = False,
    ) -> np.ndarray:
        """Tasks that move bytes over routes, after a delay in s, at most `highest` bytes/s each."""
        return self.add(
            count, kind=TRANSFER, route=route, amount=nbytes, highest=highest, delay=delay, lane=lane, watched=watched
        )

    def send(
        self,
        box: Numbers,
        source: Numbers,
        route: Numbers,
        nbytes: Numbers,
        *,
        count: int = 1,
        buffer: Numbers = 0.0,
        highest: Numbers = np.inf,
        delay: Numbers = 0.0,
        stream: Numbers = NONE,
        lane: Numbers = NONE,
        watched: bool = False,
    ) -> np.ndarray:
        """Tasks that send a message from rank `source` to a box. Each ends when `buffer` bytes of its stream hold the
        message, else when it has arrived; a message larger than the buffer leaves when its receive has started."""
        return self.add(
            count,
            kind=SEND,
            box=box,
            source=source,
            route=route,
            amount=nbytes,
            buffer=buffer,
            highest=highest,
            delay=delay,
            stream=stream,
            lane=lane,
            watched=watched,
        )

    def receive(
        self, box: Numbers, source: Numbers = ANY, *, count: int = 1, lane: Numbers = NONE, watched: bool = False
    ) -> np.ndarray:
        """Tasks that take the earliest message of a box that is from rank `source`, or from any."""
        return self.add(count, kind=RECEIVE, box=box, source=source, lane=lane, watched=watched)

    def add_rows(self, rows: np.ndarray) -> int:
        """Adds tasks that are rows of TASKS; the number of the first."""
        return self._tasks.add_rows(rows).start

    def schedule(self, phases: Sequence[Phase]) -> int:
        """The number of a schedule of collective calls."""
        self._schedules.append(tuple(phases))
        most = (int(max(phase.sends.max(initial=0), phase.receives.max(initial=0))) for phase in phases)
        works = 2 if any(phase.core is not None for phase in phases) else 0  # of a sender and a receiver
        self._margin = max(self._margin, 1 + max(most, default=0) + works)
        return len(self._schedules) - 1

    def call(self, schedule: int, lanes: np.ndarray, *, priority: Numbers = 0, watched: bool = False) -> np.ndarray:
        """A task per rank of a collective call, each on its lane."""
        ranks = len(lanes)
        first = self._participants.count
        tasks = self.add(
            ranks, kind=CALL, lane=lanes, amount=np.arange(first, first + ranks), priority=priority, watched=watched
        )
        self._participants.add(ranks, schedule=schedule, first=first, task=tasks, round=NONE, early=NONE, latest=NONE)
        return tasks

    def after(self, tasks: np.ndarray, earlier: np.ndarray) -> None:
        """Each of `tasks`, which were added since the last `run`, starts only when that of `earlier` has ended."""
        added = self._edges.add(len(tasks))
        most = event_loop.connect(self._tasks.rows, self._edges.rows, added.start, earlier, tasks)
        self._margin = max(self._margin, most + 1)

    def after_start(self, tasks: np.ndarray, earlier: np.ndarray) -> None:
        """Each of `tasks`, which were added since the last `run`, starts only when that of `earlier` has started."""
        added = self._edges.add(len(tasks))
        most = event_loop.connect(self._tasks.rows, self._edges.rows, added.start, earlier, tasks, True)
        self._margin = max(self._margin, most + 1)

    def release(self, tasks: np.ndarray) -> None:
        """Held tasks start when what they wait for has ended."""
        self._make_room(len(tasks))
        event_loop.release_all(State(*self._tables()), tasks)

    def run(self, until: float = np.inf) -> np.ndarray:
        """Runs until watched tasks have ended, and returns them; none: everything has ended that can, or it is `until`
        and nothing happens before."""
        while held_state.run(self._held(), self._tasks.count, self._margin, until) == event_loop.FULL:
            self._make_room()
        count, self._counts[REPORTED] = int(self._counts[REPORTED]), 0
        if not count and until < np.inf:
            self.wait_until(until)
        return self._reports[:count].copy()

    def wait_until(self, moment: float) -> None:
        """Sets the clock to a time before which nothing happens."""
        self._clock[0] = moment

    def _make_room(self, released: int = 0) -> None:
        """For what one event may start, and for as many tasks as are released."""
        flows = len(self._network.flows)
        if self._network.counts[FREE] < self._margin:
            self._network = resized(self._network, int(self._network.counts[HOPS]), 2 * flows + self._margin)
        started = self._margin + released
        free = int(self._counts[FREE_MESSAGES])
        if free < started:
            more = len(self._messages) + started
            self._messages = grown_messages(self._messages, free, len(self._messages) + more)
            self._counts[FREE_MESSAGES] += more
        self._queue = with_room(self._queue, event_loop.EVENTS_OF_A_TASK * started)

    def _held(self) -> HeldState:
        """The tables as they are."""
        if len(self._reports) < self._tasks.count:
            self._reports = np.zeros(2 * self._tasks.count, np.int64)
        tables = self._tables()
        if self._holds is None or any(map(is_not, tables, self._holds)):
            self._holds, self._kept = tables, HeldState(State(*tables))
        return self._kept

    def _tables(self) -> tuple[Any, ...]:
        """In the order of State."""
        return (
            self._queue,
            self._network,
            self._tasks.rows,
            self._edges.rows,
            self._lanes.rows,
            self._routes.rows,
            self._schedule_table(),
            self._streams.rows,
            self._boxes.rows,
            self._participants.rows,
            self._messages,
            self._counts,
            self._reports,
            self._clock,
        )

    def _schedule_table(self) -> Schedules:
        if len(self._schedule_rows.first) != len(self._schedules) + 1:
            self._schedule_rows = schedule_rows(self._schedules)
        return self._schedule_rows

    def waiting(self) -> np.ndarray:
        """Tasks that have not ended."""
        return np.flatnonzero(np.isnan(self.end))

    def add(self, count: int, **values: object) -> np.ndarray:
        """Tasks from columns of `Tasks`."""
        added = self._tasks.add(count, **values)
        return np.arange(added.start, added.stop)
