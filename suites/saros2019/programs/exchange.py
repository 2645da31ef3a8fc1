"""How ranks that hold their own users agree on the factors of items after each round: by adding up all changes with an
all-reduce, or on parameter servers, which are sent the changes of the items that were met alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from scaleproof.collectives.group import Group
from scaleproof.transports.contract import Array

FLOAT, ID = np.dtype(np.float32), np.dtype(np.int64)
Learn = Callable[[], None]
"""Changes the factors of items in place, those of the items met alone."""


class Exchange(Protocol):
    """Of one rank. All ranks call `round` equally often."""

    def round(self, items: Array, met: Array, learn: Learn) -> None:
        """`items` float32 (items, d), current in the rows `met` when `learn` is called; ascending int64."""

    def finish(self, items: Array) -> None:
        """All rows are current."""


class Alone:
    """One rank, which has nobody to agree with."""

    def round(self, items: Array, met: Array, learn: Learn) -> None:
        """See Exchange."""
        learn()

    def finish(self, items: Array) -> None:
        """See Exchange."""


class AllReduce:
    """Every rank has all rows, and adds up the changes of all rows."""

    def __init__(self, group: Group, items: Array) -> None:
        self._group = group
        self._change = _array(group, items.size, FLOAT)

    def round(self, items: Array, met: Array, learn: Learn) -> None:
        """See Exchange."""
        before = items.copy()
        learn()
        np.subtract(items.reshape(-1), before.reshape(-1), out=self._change)
        self._group.all_reduce(self._change).wait()
        np.add(before, self._change.reshape(items.shape), out=items)

    def finish(self, items: Array) -> None:
        """See Exchange."""


class Servers:
    """Rank r serves the rows of items r, r + n, ...: a round pulls the rows that are met from their servers, and pushes
    their changes. A server answers all pulls of a round before it adds up the pushes, in the order of ranks."""

    def __init__(self, group: Group, items: Array) -> None:
        self._group, self._to = group, group.transport
        self._peers = [rank for rank in range(group.world_size) if rank != group.rank]
        self._served = items[group.rank :: group.world_size].copy()
        most, dim = len(items) // group.world_size + 1, items.shape[1]
        self._dim = dim
        self._counts = {peer: (_array(group, 1, ID), _array(group, 1, ID)) for peer in self._peers}
        self._ids = {peer: (_array(group, most, ID), _array(group, most, ID)) for peer in self._peers}
        self._rows = {
            peer: (_array(group, most * dim, FLOAT), _array(group, most * dim, FLOAT)) for peer in self._peers
        }

    def round(self, items: Array, met: Array, learn: Learn) -> None:
        """See Exchange."""
        n, rank = self._group.world_size, self._group.rank
        mine = {peer: met[met % n == peer] for peer in self._peers}
        theirs = self._swap_ids(mine)
        own = met[met % n == rank]
        items[own] = self._served[own // n]
        answers = {peer: self._served[ids // n] for peer, ids in theirs.items()}
        for peer, rows in self._swap_rows(answers, mine).items():
            items[mine[peer]] = rows
        before = items[met]
        learn()
        change = items[met] - before
        of_peer = {peer: change[met % n == peer] for peer in self._peers}
        pushed = self._swap_rows(of_peer, theirs)
        total = np.zeros_like(self._served)
        for source in range(n):
            if source == rank:
                total[own // n] += change[met % n == rank]
            else:
                total[theirs[source] // n] += pushed[source]
        self._served += total

    def _swap_ids(self, mine: dict[int, Array]) -> dict[int, Array]:
        """Which rows each peer wants from here."""
        for peer, (sent, _) in self._counts.items():
            sent[0] = len(mine[peer])
        self._swap(self._counts, dict.fromkeys(self._peers, 1), dict.fromkeys(self._peers, 1))
        counts = {peer: int(received[0]) for peer, (_, received) in self._counts.items()}
        for peer, (sent, _) in self._ids.items():
            sent[: len(mine[peer])] = mine[peer]
        self._swap(self._ids, {peer: len(ids) for peer, ids in mine.items()}, counts)
        return {peer: self._ids[peer][1][:count].copy() for peer, count in counts.items()}

    def _swap_rows(self, rows: dict[int, Array], wanted: dict[int, Array]) -> dict[int, Array]:
        """Sends each peer its rows; receives as many as were wanted."""
        for peer, (sent, _) in self._rows.items():
            sent[: rows[peer].size] = rows[peer].reshape(-1)
        counts = {peer: len(ids) * self._dim for peer, ids in wanted.items()}
        self._swap(self._rows, {peer: one.size for peer, one in rows.items()}, counts)
        return {peer: self._rows[peer][1][:count].reshape(-1, self._dim).copy() for peer, count in counts.items()}

    def _swap(self, buffers: dict[int, tuple[Array, Array]], sent: dict[int, int], received: dict[int, int]) -> None:
        """So many elements to and from each peer, at the same time."""
        handles = [self._to.recv(buffers[peer][1][: received[peer]], peer) for peer in self._peers]
        handles += [self._to.send(buffers[peer][0][: sent[peer]], peer) for peer in self._peers]
        for handle in reversed(handles):
            handle.wait()

    def finish(self, items: Array) -> None:
        """See Exchange: by an all-reduce of what each rank serves."""
        whole = _array(self._group, items.size, FLOAT)
        whole[:] = 0
        whole.reshape(items.shape)[self._group.rank :: self._group.world_size] = self._served
        self._group.all_reduce(whole).wait()
        items[:] = whole.reshape(items.shape)


def _array(group: Group, count: int, dtype: np.dtype) -> Array:
    """In memory that the group's transport moves."""
    return group.allocate(count * dtype.itemsize).view(dtype)
