"""Reads a CSV by columns (pyarrow), and so the Venus slice of this suite. A broken file gives one line with file, line
and what is wrong."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from suite_programs.jobs import GPUS_PER_NODE, NO_NAME, Jobs, Pools, checked, numbered

from scaleproof.spec.errors import SpecError
from scaleproof.spec.registry import nearest

SLICE = Path(__file__).parents[1] / "data" / "venus_slice.csv"
SLICE_NODES = {"vcvGl": 20, "vcvlY": 2}
"""Nodes of its VCs, as its comment lines say."""
MICROSECOND = 1e-6


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a CSV by name, and the line of its first row."""

    path: Path
    table: pa.Table
    first_line: int

    def numbers(self, name: str) -> np.ndarray:
        """A column of numbers (rows,); SpecError with the line of the first that is none."""
        texts = self.texts(name)
        values = pa.array(texts)
        try:
            return np.asarray(pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid:
            numeric = pc.match_substring_regex(values, r"^[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?$").to_numpy(False)
            row = int(np.flatnonzero(~numeric.astype(bool))[0])
            raise SpecError(f"{self.path}:{self.first_line + row}: {name} is no number: {texts[row]!r}") from None

    def whole(self, name: str, least: int = 0) -> np.ndarray:
        """A column of whole numbers from `least` on (rows,); SpecError with the line of the first that is none."""
        values = self.numbers(name)
        wrong = ~np.isfinite(values) | (values != np.round(values)) | (values < least)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            text = self.texts(name)[row]
            raise SpecError(f"{self.path}:{self.first_line + row}: {name} is no whole number from {least} on: {text!r}")
        return values.astype(np.int64)

    def texts(self, name: str) -> np.ndarray:
        """A column as texts (rows,); SpecError names the nearest where the file has none of this name."""
        if name not in self.table.column_names:
            known = self.table.column_names
            raise SpecError(f"{self.path}:{self.first_line - 1}: no column {name!r}; {nearest(name, known)}")
        return np.asarray(self.table[name].to_numpy(zero_copy_only=False)).astype(object)

    def seconds(self, name: str) -> np.ndarray:
        """A column of dates and times, or of numbers of s (rows,)."""
        column = self.table[name] if name in self.table.column_names else None
        if column is None:
            self.texts(name)
        try:
            moments = pc.strptime(column, format="%Y-%m-%d %H:%M:%S", unit="s")
            return np.asarray(pc.cast(moments, pa.int64()).to_numpy(zero_copy_only=False)).astype(float)
        except pa.ArrowInvalid:
            return self.numbers(name)

    @property
    def lines(self) -> np.ndarray:
        """Of each row."""
        return np.arange(self.table.num_rows) + self.first_line


def read_columns(path: Path) -> Columns:
    """A CSV with a line of names; lines before it that begin with # are comments."""
    try:
        comments = _comments(path)
        options = csv.ReadOptions(skip_rows=comments)
        table = csv.read_csv(path, options, convert_options=csv.ConvertOptions(column_types=_as_texts(path, comments)))
    except (OSError, pa.ArrowInvalid) as error:
        raise SpecError(f"{path}{_uneven_line(path)}: {str(error).splitlines()[0]}") from error
    return Columns(path, table, comments + 2)


def _uneven_line(path: Path) -> str:
    """`:LINE` of the first line with more or fewer fields than the names; empty without."""
    fields = 0
    for number, line in enumerate(path.read_text().splitlines() if path.is_file() else (), 1):
        if line.startswith("#"):
            continue
        fields = fields or line.count(",")
        if line.count(",") != fields:
            return f":{number}"
    return ""


def _comments(path: Path) -> int:
    with path.open() as file:
        for number, line in enumerate(file):
            if not line.startswith("#"):
                return number
    raise SpecError(f"{path}: has no line of column names")


def _as_texts(path: Path, comments: int) -> dict[str, Any]:
    with path.open() as file:
        header = [file.readline() for _ in range(comments + 1)][-1]
    return {name.strip().strip('"'): pa.string() for name in header.split(",")}


def digest(path: Path) -> str:
    """SHA-256 of a file, first 16 hex digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def read_slice(path: Path = SLICE) -> Jobs:
    """1,867 jobs of two VCs of Venus, 1 to 26 September 2020; names are withheld."""
    columns = read_columns(path)
    tenants = columns.texts("tenant")
    unknown = np.flatnonzero(~np.isin(tenants.astype(str), list(SLICE_NODES)))
    if len(unknown):
        line = columns.lines[unknown[0]]
        raise SpecError(f"{path}:{line}: tenant {tenants[unknown[0]]!r} is none of {', '.join(SLICE_NODES)}")
    pools = Pools(tuple(SLICE_NODES), np.array(list(SLICE_NODES.values())))
    vc = (tenants.astype(str) == pools.names[1]).astype(np.int32)
    submit = columns.numbers("submit_time") * MICROSECOND
    jobs = Jobs(
        str(path), pools, submit, columns.numbers("duration_s"), columns.whole("num_chips", 1), vc,
        numbered(columns.texts("user")), np.full(len(vc), NO_NAME, np.int32), columns.lines,
    )  # fmt: skip
    return checked(jobs, ordered=True)


def between(submit: np.ndarray, first: str, last: str) -> np.ndarray:
    """Which times are of the days from `first` to `last`, both included; empty: no bound (jobs,)."""
    begin = np.datetime64(first, "s").astype(float) if first else -np.inf
    end = (np.datetime64(last, "s") + np.timedelta64(1, "D")).astype(float) if last else np.inf
    return (submit >= begin) & (submit < end)


def used_nodes(
    begins: np.ndarray, ends: np.ndarray, gpus: np.ndarray, vc: np.ndarray, vcs: int, per_node: int = GPUS_PER_NODE
) -> np.ndarray:
    """Nodes that each VC must have had (vcs,): those of its GPUs that were in use at once, and of its largest job."""
    found = np.ones(vcs, np.int64)
    for each in range(vcs):
        mine = vc == each
        moments = np.concatenate([ends[mine], begins[mine]])
        change = np.concatenate([-gpus[mine], gpus[mine]])
        order = np.argsort(moments, kind="stable")
        most = max(int(np.cumsum(change[order]).max(initial=0)), int(gpus[mine].max(initial=1)))
        found[each] = -(-most // per_node)
    return found
