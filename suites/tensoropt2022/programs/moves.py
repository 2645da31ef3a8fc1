"""Brings a matrix of samples and features from one layout over ranks into another: ranks send what others lack."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from scaleproof.frontiers.layout import Layout
from scaleproof.rank_programs.effects import Detach, Effect, Receive, Send


@dataclass(frozen=True, slots=True)
class Region:
    """Samples and features of a rank."""

    rows: tuple[int, int]
    columns: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, features."""
        return self.rows[1] - self.rows[0], self.columns[1] - self.columns[0]

    def has(self, cell: Region) -> bool:
        """Whether all of a cell is in it."""
        return all(
            own[0] <= other[0] and other[1] <= own[1]
            for own, other in ((self.rows, cell.rows), (self.columns, cell.columns))
        )

    def inside(self, cell: Region) -> tuple[slice, slice]:
        """Where a cell lies in an array of this region."""
        return (
            slice(cell.rows[0] - self.rows[0], cell.rows[1] - self.rows[0]),
            slice(cell.columns[0] - self.columns[0], cell.columns[1] - self.columns[0]),
        )


def region(layout: Layout, rank: int, ranks: int, samples: int, features: int) -> Region:
    """Of a rank; parts are equal (layout.py)."""
    row, column = rank // (ranks // layout.batch), rank // layout.stride % layout.features
    high, wide = samples // layout.batch, features // layout.features
    return Region((row * high, (row + 1) * high), (column * wide, (column + 1) * wide))


@dataclass(frozen=True, slots=True)
class Piece:
    """A cell that one rank sends to another."""

    source: int
    target: int
    cell: Region


@lru_cache(maxsize=256)
def pieces(have: Layout, want: Layout, ranks: int, samples: int, features: int) -> tuple[Piece, ...]:
    """All that is sent, in an order that all ranks agree on. Of several ranks that have a cell the receiver's number
    picks one, so that all of them send."""
    owned = [region(have, rank, ranks, samples, features) for rank in range(ranks)]
    wanted = [region(want, rank, ranks, samples, features) for rank in range(ranks)]
    rows = sorted({edge for each in (*owned, *wanted) for edge in each.rows})
    columns = sorted({edge for each in (*owned, *wanted) for edge in each.columns})
    found = []
    for target in range(ranks):
        for row in pairwise(rows):
            for column in pairwise(columns):
                cell = Region(row, column)
                if wanted[target].has(cell) and not owned[target].has(cell):
                    owners = [rank for rank in range(ranks) if owned[rank].has(cell)]
                    found.append(Piece(owners[target % len(owners)], target, cell))
    return tuple(found)


def moved(
    rank: int, ranks: int, value: np.ndarray, have: Layout, want: Layout, samples: int, features: int, tag: int
) -> Generator[Effect, Any, np.ndarray]:
    """The rank's part in the other layout; where no rank lacks anything a view, which takes no memory."""
    if have == want:
        return value
    own, new = (region(layout, rank, ranks, samples, features) for layout in (have, want))
    planned = pieces(have, want, ranks, samples, features)
    if not planned:
        return value[own.inside(new)]
    result = np.empty(new.shape, np.float32)
    common = Region(
        (max(own.rows[0], new.rows[0]), min(own.rows[1], new.rows[1])),
        (max(own.columns[0], new.columns[0]), min(own.columns[1], new.columns[1])),
    )
    if common.rows[0] < common.rows[1] and common.columns[0] < common.columns[1]:
        result[new.inside(common)] = value[own.inside(common)]
    for piece in planned:
        if piece.source == rank:
            yield Detach(Send(piece.target, np.ascontiguousarray(value[own.inside(piece.cell)]).reshape(-1), tag))
    for piece in planned:
        if piece.target == rank:
            arrived = yield Receive(piece.source, tag, "in a move")
            result[new.inside(piece.cell)] = arrived.value.reshape(piece.cell.shape)
    return result
