"""Reads traces by columns (pyarrow, duckdb): the Venus slice of this suite, `cluster_log.csv` of Helios, and the job
log of Philly. A broken file gives one line with file, line and what is wrong."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
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
PHILLY_START = "2017-10-01"
"""The paper evaluates October and November 2017."""


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


def _ends_after_its_start(columns: Columns) -> None:
    """SpecError for the first job whose end lies before its start."""
    begins, ends = (columns.seconds(name) for name in ("start_time", "end_time"))
    if (back := np.flatnonzero(ends < begins)).size:
        raise SpecError(f"{columns.path}:{columns.lines[back[0]]}: times run back: end_time is before start_time")


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
        str(path), pools, submit, columns.numbers("duration_s"), _whole(columns, "num_chips"), vc,
        numbered(columns.texts("user")), np.full(len(vc), NO_NAME, np.int32), columns.lines,
    )  # fmt: skip
    return checked(jobs, ordered=True)


def _whole(columns: Columns, name: str) -> np.ndarray:
    return columns.numbers(name).astype(np.int64)


def read_helios(log: Path, capacity: Path | None = None, first: str = "", last: str = "") -> Jobs:
    """GPU jobs of a Helios `cluster_log.csv` that were submitted from day `first` to day `last`, both included.
    `capacity`: `cluster_gpu_number.csv`; of each VC the most GPUs in that time. Without it a VC has as many nodes as
    its jobs used at once."""
    columns = read_columns(log)
    gpus, submit = _whole(columns, "gpu_num"), columns.seconds("submit_time")
    chosen = (gpus > 0) & _between(submit, first, last)
    vcs = columns.texts("vc").astype(str)
    names, numbers = np.unique(vcs[chosen], return_inverse=True)
    duration = columns.numbers("duration")
    _ends_after_its_start(columns)
    if capacity is not None:
        nodes = _capacities(capacity, names, first, last)
    else:
        begins = columns.seconds("start_time")[chosen]
        nodes = used_nodes(begins, begins + duration[chosen], gpus[chosen], numbers, len(names))
    pools = Pools(tuple(names.tolist()), nodes)
    name = columns.texts("job_name") if "job_name" in columns.table.column_names else None
    jobs = Jobs(
        str(log), pools, submit[chosen], duration[chosen], gpus[chosen], numbers.astype(np.int32),
        numbered(columns.texts("user")[chosen]),
        np.full(int(chosen.sum()), NO_NAME, np.int32) if name is None else numbered(name[chosen]),
        columns.lines[chosen],
    )  # fmt: skip
    return checked(jobs, ordered=False)


def _between(submit: np.ndarray, first: str, last: str) -> np.ndarray:
    begin = np.datetime64(first, "s").astype(float) if first else -np.inf
    end = (np.datetime64(last, "s") + np.timedelta64(1, "D")).astype(float) if last else np.inf
    return (submit >= begin) & (submit < end)


def _capacities(path: Path, names: np.ndarray, first: str, last: str) -> np.ndarray:
    """Nodes of each VC: the most GPUs of any day in the time, over those of a node."""
    columns = read_columns(path)
    days = columns.texts("date").astype(str)
    chosen = np.ones(len(days), bool) if not first else (days >= first) & (days <= last)
    if not chosen.any():
        raise SpecError(f"{path}: has no day from {first} to {last}")
    return np.array([-(-int(columns.numbers(name)[chosen].max()) // GPUS_PER_NODE) for name in names])


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


PHILLY_QUERY = """
with jobs as (
  select row_number() over () as row, * from read_json(?, format='array', columns={jobid: 'VARCHAR', user: 'VARCHAR',
    vc: 'VARCHAR', status: 'VARCHAR', submitted_time: 'VARCHAR', attempts: 'STRUCT(start_time VARCHAR, end_time VARCHAR,
    detail STRUCT(ip VARCHAR, gpus VARCHAR[])[])[]'}, maximum_object_size=67108864)),
tries as (select row, jobid, "user", vc, submitted_time, unnest(attempts) as try from jobs)
select row, any_value("user") as "user", any_value(vc) as vc, any_value(submitted_time) as submitted,
  min(try_cast(try.start_time as timestamp)) as began,
  sum(epoch(try_cast(try.end_time as timestamp)) - epoch(try_cast(try.start_time as timestamp))) as duration,
  max(list_sum(list_transform(try.detail, lambda node: len(node.gpus)))) as gpus
from tries group by row having gpus > 0 and duration is not null order by row"""


def read_philly(log: Path, capacity: Path | None = None, first: str = PHILLY_START, last: str = "2017-11-30") -> Jobs:
    """Jobs of Philly's `cluster_job_log` (JSON) in the days given. A job runs as long as all its attempts together, on
    the most GPUs of one; jobs that never ran are left out. `capacity`: a CSV with `vc`, `nodes`; without it a VC has as
    many nodes of 8 GPUs as its jobs used at once."""
    try:
        found = duckdb.connect().sql(PHILLY_QUERY, params=[str(log)]).to_arrow_table()
    except duckdb.Error as error:
        raise SpecError(f"{log}: {str(error).splitlines()[0]}") from error
    columns = Columns(log, found, 1)
    submit = columns.seconds("submitted")
    chosen = _between(submit, first, last)
    vcs = columns.texts("vc").astype(str)[chosen]
    names, numbers = np.unique(vcs, return_inverse=True)
    duration = found["duration"].to_numpy().astype(float)[chosen]
    gpus = found["gpus"].to_numpy().astype(np.int64)[chosen]
    if capacity is None:
        begins = pc.cast(pc.cast(found["began"], pa.timestamp("s")), pa.int64()).to_numpy().astype(float)[chosen]
        nodes = used_nodes(begins, begins + duration, gpus, numbers, len(names))
    else:
        nodes = _stated_nodes(capacity, names)
    jobs = Jobs(
        str(log), Pools(tuple(name[:6] for name in names.tolist()), nodes), submit[chosen], duration, gpus,
        numbers.astype(np.int32), numbered(columns.texts("user")[chosen]),
        np.full(len(gpus), NO_NAME, np.int32), found["row"].to_numpy()[chosen],
    )  # fmt: skip
    return checked(jobs, ordered=False)


def _stated_nodes(path: Path, names: np.ndarray) -> np.ndarray:
    columns = read_columns(path)
    stated = dict(zip(columns.texts("vc").astype(str), columns.numbers("nodes").astype(int), strict=True))
    missing = [name for name in names if name not in stated]
    if missing:
        raise SpecError(f"{path}: has no VC {missing[0]!r}")
    return np.array([stated[name] for name in names])
