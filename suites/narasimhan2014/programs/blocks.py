"""Samples as rows in compressed form (CSR), and the block of them that a rank holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from suite_programs.kernels import squares_of

from scaleproof.spec.errors import SpecError

LARGEST = float(np.finfo(np.float64).max) / 4
"""|x|^2 is below this, so that no distance of two rows overflows."""


@dataclass(frozen=True, slots=True)
class Rows:
    """CSR rows. `starts`: int64 (rows + 1); `columns`: int32; `values`: float64; `squares`: |x|^2, float64 (rows)."""

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    squares: np.ndarray
    features: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def longest(self) -> int:
        """Most values of a row."""
        return int(np.diff(self.starts).max(initial=0))

    def row(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Columns and values of a row."""
        part = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return self.columns[part], self.values[part]

    def chosen(self, rows: np.ndarray) -> Rows:
        """Some rows, in the order given."""
        counts = np.diff(self.starts)[rows]
        starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        places = np.repeat(self.starts[rows] - starts[:-1], counts) + np.arange(starts[-1])
        return Rows(starts, self.columns[places], self.values[places], self.squares[rows], self.features)

    def dense(self) -> np.ndarray:
        """float64 (rows, features)."""
        result = np.zeros((len(self), self.features))
        result[np.repeat(np.arange(len(self)), np.diff(self.starts)), self.columns] = self.values
        return result


def rows_of(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, features: int) -> Rows:
    """With their squares. SpecError for the first row with one that the kernel cannot be computed from."""
    starts, columns = starts.astype(np.int64), columns.astype(np.int32)
    values = np.ascontiguousarray(values, np.float64)
    squares = squares_of(starts, columns, values)
    wrong = np.flatnonzero(~(squares < LARGEST))
    if len(wrong):
        raise SpecError(f"sample {wrong[0]}: {too_large(float(squares[wrong[0]]))}")
    return Rows(starts, columns, values, squares, features)


def too_large(square: float) -> str:
    """What is wrong with a row of this |x|^2."""
    return f"|x|^2 is {square:g}, the kernel needs less than {LARGEST:.2g}; scale the values"


def compressed(dense: np.ndarray) -> Rows:
    """Rows of a dense array (rows, features) without its zeros."""
    row, column = np.nonzero(dense)
    starts = np.searchsorted(row, np.arange(len(dense) + 1))
    return rows_of(starts, column, dense[row, column], dense.shape[1])


def share(count: int, ranks: int, rank: int) -> tuple[int, int]:
    """First row of a rank's block and the row after its last: blocks differ by one row at most."""
    return rank * count // ranks, (rank + 1) * count // ranks


def block(rows: Rows, ranks: int, rank: int) -> Rows:
    """The rows that a rank holds."""
    first, last = share(len(rows), ranks, rank)
    return rows.chosen(np.arange(first, last))
