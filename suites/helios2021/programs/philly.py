"""Reads Philly's `cluster_job_log` (JSON, duckdb): its jobs, and when each of its machines was in use."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
from suite_programs.jobs import NO_NAME, Jobs, Pools, checked, numbered
from suite_programs.traces import between, read_columns, used_nodes

from scaleproof.spec.errors import SpecError

FIRST, LAST = "2017-10-01", "2017-11-30"
"""Days whose jobs the paper schedules."""
NODES = {
    "6214e9": 64, "7f04ca": 32, "11cb48": 16, "b436b2": 64, "ee9e8c": 64, "e13805": 16, "6c71a0": 32, "2869ce": 16,
    "ed69ec": 8, "103959": 8, "0e4a51": 32,
}  # fmt: skip
"""Nodes of 8 GPUs of the VCs that the artifact simulates, by the first six letters of their names
(S-Lab-System-Group/HeliosArtifact@bdaae10, framework/QSSF Service/data/philly_vc.csv)."""
LETTERS = 6
PLACE = "{source}: job {line}"
"""Where a job stands: its number in the list."""
TRIES = """
with jobs as (
  select row_number() over () as row, * from read_json(?, format='array', columns={user: 'VARCHAR', vc: 'VARCHAR',
    status: 'VARCHAR', submitted_time: 'VARCHAR', attempts: 'STRUCT(start_time VARCHAR, end_time VARCHAR,
    detail STRUCT(ip VARCHAR, gpus VARCHAR[])[])[]'}, maximum_object_size=67108864)),
listed as (select row, status, "user", vc, submitted_time, unnest(attempts) as try from jobs),
tries as (select row, status, "user", vc, epoch(try_cast(submitted_time as timestamp)) as submitted,
  epoch(try_cast(try.start_time as timestamp)) as began, epoch(try_cast(try.end_time as timestamp)) as ended,
  try.detail as detail from listed)
"""
JOBS = """
select row, any_value(status) as status, any_value("user") as "user", any_value(vc) as vc,
  any_value(submitted) as submitted, min(began) as began, sum(ended - began) as duration,
  max(list_sum(list_transform(detail, lambda node: len(node.gpus)))) as gpus
from tries group by row having gpus > 0 and duration is not null order by row"""
KEYS = ("user", "vc", "status", "submitted_time", "attempts")
"""Of a job; a log that lacks one is no log of Philly."""
BROKEN = """
, timed as (select row, try.start_time as start_time, try.end_time as end_time, began, ended from (
  select row, try, epoch(try_cast(try.start_time as timestamp)) as began,
    epoch(try_cast(try.end_time as timestamp)) as ended from listed))
select row, what from (
  select row, case {missing} end as what from jobs
  union all
  select row, case when start_time is not null and began is null then 'start_time is no time'
    when end_time is not null and ended is null then 'end_time is no time'
    when ended < began then 'an attempt ends before it begins' end as what from timed)
where what is not null order by row limit 1"""
"""The first job that is wrong, and why; `missing`: a case for each of KEYS."""
MACHINES = """
select node.ip as ip, began, ended from (select began, ended, unnest(detail) as node from tries)
where ended > began and node.ip is not null"""


def _asked(log: Path, query: str) -> dict[str, np.ndarray]:
    """Columns by name; what is missing among numbers is NaN."""
    try:
        found = duckdb.connect().execute(TRIES + query, [str(log)]).fetchnumpy()
    except duckdb.Error as error:
        raise SpecError(f"{log}: {str(error).splitlines()[0]}") from error
    return {
        name: np.ma.filled(values.astype(float), np.nan)
        if values.dtype.kind in "iuf"
        else np.ma.filled(values.astype(object), "").astype(str)
        for name, values in found.items()
    }


def check_log(log: Path) -> None:
    """SpecError for the first job that lacks a key, or has a time that is none or runs back."""
    missing = " ".join(f"when \"{key}\" is null then 'has no key ''{key}'''" for key in KEYS)
    found = _asked(log, BROKEN.replace("{missing}", missing))
    if len(found["row"]):
        raise SpecError(f"{log}: job {int(found['row'][0])}: {found['what'][0]}")


def job_table(log: Path) -> dict[str, np.ndarray]:
    """All jobs that ran (jobs,): `row` (its number in the list), `status`, `user`, `vc`, `submitted`, `began` (s),
    `duration` (s of all attempts together), `gpus` (the most of one attempt)."""
    return _asked(log, JOBS)


def machine_times(log: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Machine, begin and end, in s, of each attempt on each machine (times,)."""
    found = _asked(log, MACHINES)
    return found["ip"], found["began"], found["ended"]


def read_philly(
    log: Path, capacity: Path | None = None, first: str = FIRST, last: str = LAST, every_vc: bool = False
) -> Jobs:
    """Jobs that were submitted in the days given. A job runs as long as all its attempts together, on the most GPUs of
    one; jobs that never ran are not among them. `capacity`: a CSV with `vc`, `nodes`; without it the artifact's VCs.
    Jobs of other VCs are left out, and counted. `every_vc`: all VCs, with as many nodes as their jobs used at once."""
    check_log(log)
    found = job_table(log)
    if (wrong := np.flatnonzero(np.isnan(found["submitted"]))).size:
        raise SpecError(f"{log}: job {int(found['row'][wrong[0]])}: submitted_time is no time")
    vcs = np.array([name[:LETTERS] for name in found["vc"].tolist()], str)
    chosen = between(found["submitted"], first, last)
    stated = NODES if capacity is None else _stated_nodes(capacity)
    out = ~np.isin(vcs, list(stated)) & (not every_vc)
    left_out = int((chosen & out).sum())
    chosen &= ~out
    some = {name: values[chosen] for name, values in found.items()}
    names, numbers = np.unique(vcs[chosen], return_inverse=True)
    gpus = some["gpus"].astype(np.int64)
    if every_vc:
        nodes = used_nodes(some["began"], some["began"] + some["duration"], gpus, numbers, len(names))
    else:
        nodes = np.array([stated[name] for name in names.tolist()], np.int64)
    jobs = Jobs(
        str(log), Pools(tuple(names.tolist()), nodes), some["submitted"], some["duration"], gpus,
        numbers.astype(np.int32), numbered(some["user"]), np.full(len(gpus), NO_NAME, np.int32),
        some["row"].astype(np.int64), left_out,
    )  # fmt: skip
    return checked(jobs, ordered=False, place=PLACE)


def _stated_nodes(path: Path) -> dict[str, int]:
    columns = read_columns(path)
    names = [name[:LETTERS] for name in columns.texts("vc").astype(str).tolist()]
    return dict(zip(names, columns.whole("nodes", 1).tolist(), strict=True))
