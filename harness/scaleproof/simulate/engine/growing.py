"""Tables of rows that grow while a simulation adds to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

START = 1024
"""Rows at first; they double."""


def row_type(integers: str, floats: str = "") -> np.dtype:
    """The type of a row with these columns; the names are apart by spaces."""
    columns = [(name, np.int64) for name in integers.split()] + [(name, np.float64) for name in floats.split()]
    return np.dtype((np.record, columns))


def new_rows(count: int, form: np.dtype) -> np.recarray:
    """Rows whose columns are all 0."""
    return np.zeros(count, form).view(np.recarray)


def more_rows(rows: np.ndarray, count: int) -> np.recarray:
    """A copy with `count` rows; the new ones are 0."""
    larger = new_rows(count, rows.dtype)
    larger[: len(rows)] = rows
    return larger


class Growing:
    """A table of which `count` rows are in use. `rows` are a recarray for the type checker only: of a real one numba
    looks up every attribute in Python, at each call of a compiled function. `usual`: values of columns in rows that do
    not state them; else 0."""

    def __init__(self, form: np.dtype, room: int = START, usual: Mapping[str, float] | None = None) -> None:
        self.count, self.rows, self._usual = 0, _plain(new_rows(room, form)), _plain(new_rows(1, form))
        for name, value in (usual or {}).items():
            self._usual[name] = value
        self._columns = self._views()

    def add(self, count: int, **values: Any) -> slice:
        """Further rows with these values."""
        added = self._room(count)
        self.rows[added] = self._usual
        for name, value in values.items():
            self._columns[name][added] = value
        return added

    def add_rows(self, rows: np.ndarray) -> slice:
        """Copies of whole rows, of the type of the table: the fast way for many that are alike."""
        added = self._room(len(rows))
        self.rows[added] = rows
        return added

    def _room(self, count: int) -> slice:
        added = slice(self.count, self.count + count)
        if added.stop > len(self.rows):
            self.rows = _plain(more_rows(self.rows, max(2 * len(self.rows), added.stop)))
            self._columns = self._views()
        self.count = added.stop
        return added

    def _views(self) -> dict[str, np.ndarray]:
        return {name: self.rows[name] for name in self.rows.dtype.names or ()}


def _plain(rows: np.recarray) -> np.recarray:
    return cast(np.recarray, np.asarray(rows))
