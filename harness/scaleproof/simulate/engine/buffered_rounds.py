"""Rounds of collective calls on a star, compiled, for ranks that each send over one connection: no two messages share a
link, so that each rank's times follow from those of the rank before."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.compiled import compiled, inlined
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.engine.growing import more_rows, new_rows, row_type

EXCLUSIVE = row_type("source destination", "nbytes before moving reducing")
"""A message of a round in which no rank sends or receives two: s until its first byte leaves, s until all have arrived
after that, and s of its reduction."""
CONNECTIONS = row_type("first last", "arrives nbytes")
"""Of each rank: when the last of its messages arrives, in s, the bytes of those under way, and a list of them."""
UNDER_WAY = row_type("following free", "arrives nbytes")
"""Messages that are under way; `free`: a stack of free rows."""


def exclusive(*columns: np.ndarray) -> np.recarray:
    """The messages of a round."""
    rows = new_rows(len(columns[0]), EXCLUSIVE)
    for name, column in zip(EXCLUSIVE.names or (), columns, strict=True):
        rows[name] = column
    return rows


class Connections:
    """The connections of all ranks. `buffer`: bytes that each takes before its receiver reads. `arrives`: when the last
    message of each rank arrives, in s; -inf: none was sent."""

    def __init__(self, ranks: int, buffer: float) -> None:
        self._buffer, self._of_ranks, self._entered = buffer, new_rows(ranks, CONNECTIONS), np.zeros(ranks)
        self.arrives, self._first = self._of_ranks["arrives"], self._of_ranks["first"]
        self.arrives[:], self._first[:] = -np.inf, NONE
        self._free, self._under_way = np.zeros(1, np.int64), new_rows(0, UNDER_WAY)

    def all_arrived(self, at: np.ndarray) -> None:
        """Every rank has sent messages, the last of which has arrived at a time in s."""
        self.arrives[:] = at
        if self._free[0] < len(self._under_way):
            self._first[:], self._of_ranks["nbytes"] = NONE, 0.0
            self._under_way.free, self._free[0] = np.arange(len(self._under_way)), len(self._under_way)

    def rounds(self, messages: np.recarray, times: int, at: np.ndarray) -> None:
        """A round, repeated. `at`: when each rank enters it, in s, and then when it has done with the last."""
        while times := times - _rounds(
            messages, times, at, self._entered, self._of_ranks, self._under_way, self._free, self._buffer
        ):
            self._grow(len(messages))

    def _grow(self, more: int) -> None:
        before = len(self._under_way)
        added = before + more
        self._under_way = more_rows(self._under_way, before + added)
        self._under_way.free[self._free[0] : self._free[0] + added] = np.arange(before, before + added)
        self._free[0] += added


@compiled
def _rounds(
    messages: np.recarray,
    times: int,
    at: np.ndarray,
    entered: np.ndarray,
    connections: np.recarray,
    under_way: np.recarray,
    free: np.ndarray,
    buffer: float,
) -> int:
    """Returns the number of rounds that there was room for. `entered`: when each rank enters a round."""
    for turn in range(times):
        if free[0] < len(messages):
            return turn
        for rank in range(len(at)):
            entered[rank] = at[rank]
        for number in range(len(messages)):
            message = messages[number]
            source, destination = message.source, message.destination
            begins, waits = entered[source], message.nbytes > buffer
            if waits:
                begins = max(begins, entered[destination])
            arrives = max(begins + message.before, connections[source].arrives) + message.moving
            if _send(connections, source, under_way, free, entered[source], message.nbytes, arrives) > buffer:
                at[source] = max(at[source], arrives)
            at[destination] = max(at[destination], arrives)
        for number in range(len(messages)):
            at[messages[number].destination] += messages[number].reducing
    return times


@inlined
def _send(
    connections: np.recarray,
    source: int,
    under_way: np.recarray,
    free: np.ndarray,
    now: float,
    nbytes: float,
    arrives: float,
) -> float:
    """Puts a message on a connection. Returns the bytes that it holds now."""
    connection = connections[source]
    while connection.first != NONE and under_way[connection.first].arrives <= now:
        first = connection.first
        connection.nbytes -= under_way[first].nbytes
        connection.first = under_way[first].following
        under_way[free[0]].free = first
        free[0] += 1
    free[0] -= 1
    new = under_way[free[0]].free
    under_way[new].arrives, under_way[new].nbytes, under_way[new].following = arrives, nbytes, NONE
    if connection.first == NONE:
        connection.first = new
    else:
        under_way[connection.last].following = new
    connection.last, connection.arrives = new, arrives
    connection.nbytes += nbytes
    return float(connection.nbytes)
