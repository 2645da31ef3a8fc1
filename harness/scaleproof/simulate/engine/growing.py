"""Tables of arrays that grow while a simulation adds to them."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

START = 1024
"""Rows at first; they double."""
Form = TypeVar("Form")


class Growing(Generic[Form]):
    """Rows of a form of arrays, whose columns are integers but for those named in `floats`."""

    def __init__(self, form: type[Form], floats: frozenset[str] = frozenset()) -> None:
        self.count, self._form = 0, form
        names = form.__annotations__
        self._columns = {name: np.zeros(START, float if name in floats else np.int64) for name in names}
        self.rows: Form = form(**self._columns)

    def add(self, count: int, **values: Any) -> slice:
        """Further rows with these values; columns without a value are 0."""
        added = slice(self.count, self.count + count)
        room = len(next(iter(self._columns.values())))
        if added.stop > room:
            size = max(2 * room, added.stop)
            self._columns = {name: _longer(column, size) for name, column in self._columns.items()}
            self.rows = self._form(**self._columns)
        for name, value in values.items():
            self._columns[name][added] = value
        self.count = added.stop
        return added


def _longer(column: np.ndarray, size: int) -> np.ndarray:
    longer = np.zeros(size, column.dtype)
    longer[: len(column)] = column
    return longer
