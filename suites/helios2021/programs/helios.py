"""Reads `cluster_log.csv` of a Helios cluster, with the virtual clusters (VCs) that the artifact simulates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from suite_programs.jobs import GPUS_PER_NODE, NO_NAME, Jobs, Pools, checked, numbered
from suite_programs.traces import Columns, between, read_columns, used_nodes

from scaleproof.spec.errors import SpecError


@dataclass(frozen=True, slots=True)
class Vcs:
    """VCs of a cluster in the artifact: the day of which their nodes are, which it drops, and which it takes for which
    other."""

    day: str
    dropped: tuple[str, ...]
    merged: Mapping[str, str] = field(default_factory=dict)


OF_CLUSTER = {
    "venus": Vcs(
        "2020-09-10",
        ("vcEhP", "vcIya", "vcJLV", "vcJkd", "vcsBT"),
        {"vcbIW": "vcvGl", "vc6YE": "vcvGl", "vcOhe": "vcKeu", "vccJW": "vcKeu", "vcP2J": "vchA3"},
    ),
    "earth": Vcs(
        "2020-09-10", ("vcp4O", "vcvcM", "vcXrB", "vc7hD", "vcIya", "vc8Sj", "vcLJZ"), {"vcxS0": "vc3sl"}
    ),
    "saturn": Vcs("2020-09-01", ("vc7Bz", "vcHcQ", "vck1d", "vcj72", "vcIya", "vcygX", "vcxqr", "vcsgw")),
    "uranus": Vcs(
        "2020-09-10",
        ("vc7Bz", "vczGr", "vciN1", "vcV7h", "vcRAl", "vcvcM", "vc1z2"),
        {
            "vcVvI": "vcUV3", "vcxqr": "vcUV3", "vcsBT": "vcUV3", "vcygX": "vcUV3", "vcHyk": "vcOlr",
            "vcRDh": "vc7hD", "vcFsC": "vc7hD",
        },
    ),
}  # fmt: skip
"""S-Lab-System-Group/HeliosArtifact@bdaae10, framework/QSSF Service/data: log_process.py and vc_dict_generator.py.
Nodes are whole, rounded down."""


def read_helios(log: Path, capacity: Path | None = None, first: str = "", last: str = "", cluster: str = "") -> Jobs:
    """GPU jobs of a `cluster_log.csv` that were submitted from day `first` to day `last`, both included. `capacity`:
    `cluster_gpu_number.csv`; without it a VC has as many nodes as its jobs used at once. `cluster`: one of Helios has
    the artifact's VCs, another all of the log. Jobs of VCs without nodes are left out, and counted."""
    columns = read_columns(log)
    gpus, submit = columns.whole("gpu_num"), columns.seconds("submit_time")
    duration = columns.numbers("duration")
    ends_after_its_start(columns)
    vcs = merged_vcs(columns, cluster)
    chosen = (gpus > 0) & between(submit, first, last)
    known = OF_CLUSTER.get(cluster)
    out = np.isin(vcs, known.dropped if known else ())
    if capacity is not None:
        stated = _capacities(capacity, first, last, known.day if known else "")
        out |= ~np.isin(vcs, [name for name, nodes in stated.items() if nodes])
    left_out = int((chosen & out).sum())
    chosen &= ~out
    names, numbers = np.unique(vcs[chosen], return_inverse=True)
    if capacity is not None:
        nodes = np.array([stated[name] for name in names.tolist()], np.int64)
    else:
        begins = columns.seconds("start_time")[chosen]
        nodes = used_nodes(begins, begins + duration[chosen], gpus[chosen], numbers, len(names))
    name = columns.texts("job_name") if "job_name" in columns.table.column_names else None
    jobs = Jobs(
        str(log), Pools(tuple(names.tolist()), nodes), submit[chosen], duration[chosen], gpus[chosen],
        numbers.astype(np.int32), numbered(columns.texts("user")[chosen]),
        np.full(int(chosen.sum()), NO_NAME, np.int32) if name is None else numbered(name[chosen]),
        columns.lines[chosen], left_out,
    )  # fmt: skip
    return checked(jobs, ordered=True)


def merged_vcs(columns: Columns, cluster: str) -> np.ndarray:
    """The VC of each job (jobs,); those that the artifact takes for another are that one."""
    names, numbers = np.unique(columns.texts("vc").astype(str), return_inverse=True)
    merged = OF_CLUSTER[cluster].merged if cluster in OF_CLUSTER else {}
    return np.array([merged.get(name, name) for name in names.tolist()])[numbers]


def ends_after_its_start(columns: Columns) -> None:
    """SpecError for the first job whose end lies before its start."""
    begins, ends = (columns.seconds(name) for name in ("start_time", "end_time"))
    if (back := np.flatnonzero(ends < begins)).size:
        raise SpecError(f"{columns.path}:{columns.lines[back[0]]}: times run back: end_time is before start_time")


def _capacities(path: Path, first: str, last: str, day: str) -> dict[str, int]:
    """Whole nodes of each VC on a day; where the file has not that day, the most of any from `first` to `last`."""
    columns = read_columns(path)
    days = columns.texts("date").astype(str)
    chosen = days == day
    if not chosen.any():
        chosen = (days >= first) & (days <= last) if first else np.ones(len(days), bool)
    if not chosen.any():
        raise SpecError(f"{path}: has no day from {first} to {last}")
    names = [name for name in columns.table.column_names if name not in ("date", "total")]
    return {name: int(columns.whole(name)[chosen].max()) // GPUS_PER_NODE for name in names}
