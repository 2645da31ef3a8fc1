"""What ranks tell each other: the extremes of gamma with their places (an all-reduce of 16 bytes), two rows (broadcasts
from the ranks that hold them), and, around a ring, all rows with alpha > 0. Narasimhan et al. 2014, distributed
layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from suite_programs.blocks import Rows, share
from suite_programs.kernels import MAGNITUDE, PLACE_BITS

from scaleproof.collectives.group import Group
from scaleproof.transports.contract import Collectives, PointToPoint

PLACES = (1 << PLACE_BITS) - 1
NOTHING = -(1 << 63)
HEAD = 5
"""Numbers before a row's columns and values: |x|^2, label, alpha, gamma, how many values."""


@dataclass(frozen=True, slots=True)
class Extreme:
    """A value of gamma, to 32 bits of its fraction, and the place of its sample among all; -1 where there is none."""

    value: float
    place: int


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of any rank: its row spread out (float64, features) and its state."""

    spread: np.ndarray
    square: float
    label: float
    alpha: float
    gamma: float


@dataclass(frozen=True, slots=True)
class Sources:
    """Rows with weights alpha y, as a ring carries them."""

    rows: Rows
    weights: np.ndarray


class Messages:
    """Of one rank; `group` is None where it is alone, `broadcaster` broadcasts rows, None: the group does. `count`:
    samples of all ranks; `longest`: most values of a row."""

    def __init__(
        self,
        group: Collectives | None,
        rows: int,
        longest: int,
        features: int,
        broadcaster: Collectives | None = None,
    ) -> None:
        self.broadcaster = broadcaster or group
        self.rank, self.ranks = (group.rank, group.world_size) if group else (0, 1)
        self.group = group
        self.features = features
        self.count, self.longest = rows, longest
        if group is not None:
            self.count = int(self.total(rows))
            self.longest = int(self._reduced(longest, "max"))
        self.first = share(self.count, self.ranks, self.rank)[0]
        bounds = [share(self.count, self.ranks, rank)[0] for rank in range(self.ranks)]
        self.owners = np.repeat(np.arange(self.ranks), np.diff([*bounds, self.count]))
        width = HEAD + 2 * self.longest
        self._row, self._keys = self._buffer(width, "float64"), self._buffer(2, "int64")
        self._spread = np.zeros((2, features))
        self._blocks = [np.empty(0), np.empty(0)]
        self._bits = np.zeros(1)
        self._word = self._bits.view(np.int64)

    def _buffer(self, count: int, dtype: str) -> np.ndarray:
        if self.group is None:
            return np.zeros(count, dtype)
        return self.group.allocate(8 * count).view(dtype)

    def _reduced(self, value: float, operation: str) -> float:
        assert self.group is not None
        buffer = np.array([value], np.float64)
        self.group.all_reduce(buffer, "max" if operation == "max" else "sum").wait()
        return float(buffer[0])

    def total(self, value: float) -> float:
        """The sum over ranks, the same on all. Whole numbers up to 2^53 are exact."""
        return value if self.group is None else self._reduced(value, "sum")

    def extremes(self, found: tuple[float, int, float, int]) -> tuple[Extreme, Extreme]:
        """beta_up and beta_low over all ranks, from this rank's values and rows. The lowest place wins between values
        that are equal to 32 bits, on every number of ranks."""
        up, up_row, low, low_row = found
        self._keys[0], self._keys[1] = self._key(-up, up_row), self._key(low, low_row)
        if self.group is not None:
            self.group.all_reduce(self._keys, "max").wait()
        first, second = self._extreme(int(self._keys[0])), self._extreme(int(self._keys[1]))
        return Extreme(-first.value, first.place), second

    def _key(self, value: float, row: int) -> int:
        """A whole number of 64 bits that is larger for larger values, and for equal ones where the place is lower."""
        if row < 0:
            return NOTHING
        self._bits[0] = value
        bits = int(self._word[0])
        ordered = bits if bits >= 0 else bits ^ MAGNITUDE
        return (ordered & ~PLACES) | (PLACES - self.first - row)

    def _extreme(self, key: int) -> Extreme:
        if key == NOTHING:
            return Extreme(float("-inf"), -1)
        ordered = key & ~PLACES
        self._word[0] = ordered if ordered >= 0 else ordered ^ MAGNITUDE
        return Extreme(float(self._bits[0]), PLACES - (key & PLACES))

    def sample(self, place: int, which: int, rows: Rows, state: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Sample:
        """A sample by its place among all, from the rank that holds it. `which`, 0 or 1: the buffer that its row is
        spread out in. `state`: labels, alpha, gamma of this rank's rows."""
        owner, row, buffer = int(self.owners[place]), place - self.first, self._row
        if owner == self.rank:
            columns, values = rows.row(row)
            found = len(columns)
            buffer[0], buffer[HEAD - 1] = rows.squares[row], found
            buffer[1:4] = [of[row] for of in state]
            buffer[HEAD : HEAD + found] = columns
            buffer[HEAD + self.longest : HEAD + self.longest + found] = values
        if self.broadcaster is not None:
            self.broadcaster.broadcast(buffer, owner).wait()
        found, spread = int(buffer[HEAD - 1]), self._spread[which]
        spread[:] = 0
        spread[buffer[HEAD : HEAD + found].astype(np.int64)] = buffer[HEAD + self.longest : HEAD + self.longest + found]
        return Sample(spread, float(buffer[0]), float(buffer[1]), float(buffer[2]), float(buffer[3]))

    def exchange(self, first: int, second: int) -> None:
        """What ranks send each other in an iteration, with rows of these two ranks, and nothing else."""
        assert self.group is not None and self.broadcaster is not None
        self.group.all_reduce(self._keys, "max").wait()
        for owner in (first, second):
            self.broadcaster.broadcast(self._row, owner).wait()

    def around(self, own: Sources) -> Iterator[Sources]:
        """The blocks of all ranks, this one's first: each rank passes on what it has just used."""
        yield own
        if self.group is None:
            return
        transport = self.group.transport if isinstance(self.group, Group) else self.group
        point_to_point = cast(PointToPoint, transport)
        sizes = self._sizes(own)
        parts = self._parts(max(_length(*size) for size in sizes))
        packed = _pack(own, parts[0])
        for step in range(1, self.ranks):
            source = (self.rank - step) % self.ranks
            coming = parts[step % 2][: _length(*sizes[source])]
            arrival = point_to_point.recv(coming, (self.rank - 1) % self.ranks)
            departure = point_to_point.send(packed, (self.rank + 1) % self.ranks)
            arrival.wait()
            departure.wait()
            packed = coming
            rows, values = (int(each) for each in sizes[source])
            yield _unpack(coming, rows, values, self.features)

    def _parts(self, longest: int) -> list[np.ndarray]:
        """Two buffers for blocks of so many numbers."""
        if len(self._blocks[0]) < longest:
            self._blocks = [self._buffer(2 * longest, "float64") for _ in range(2)]
        return self._blocks

    def _sizes(self, own: Sources) -> np.ndarray:
        """Rows and values of each rank's block, int64 (ranks, 2)."""
        sizes = np.zeros(2 * self.ranks)
        sizes[2 * self.rank : 2 * self.rank + 2] = len(own.weights), len(own.rows.values)
        assert self.group is not None
        self.group.all_reduce(sizes).wait()
        return sizes.astype(np.int64).reshape(-1, 2)

    def gathered(self, own: np.ndarray, count: int) -> np.ndarray:
        """What each rank holds of `count` numbers, in the order of ranks, on all of them."""
        if self.group is None:
            return own
        first, last = share(count, self.ranks, self.rank)
        result = np.zeros(count)
        result[first:last] = own
        self.group.all_reduce(result).wait()
        return result


def _length(rows: int, values: int) -> int:
    """Numbers that a block takes: of each row a count, |x|^2 and a weight, of each value its column."""
    return 3 * int(rows) + 2 * int(values)


def _pack(own: Sources, into: np.ndarray) -> np.ndarray:
    rows, values = len(own.weights), len(own.rows.values)
    packed = into[: _length(rows, values)]
    packed[:] = np.concatenate(
        (np.diff(own.rows.starts), own.rows.squares, own.weights, own.rows.columns, own.rows.values)
    )
    return packed


def _unpack(packed: np.ndarray, rows: int, values: int, features: int) -> Sources:
    counts, squares, weights = packed[: 3 * rows].reshape(3, rows)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    columns = packed[3 * rows : 3 * rows + values].astype(np.int32)
    return Sources(Rows(starts, columns, packed[3 * rows + values :], squares, features), weights)
