"""One table per experiment and size: a row per planned launch, also for those that failed, cannot run here or were never tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.record.schema import Record
from harness.record.stops import Stops
from harness.record.store import Store
from harness.spec.tags import AXES, tags_of

if TYPE_CHECKING:
    from harness.spec.plan import PlannedLaunch

Metric = Callable[[Record, pd.DataFrame], float | None]
MISSING = "missing"
"""Status of a planned launch without any record."""
_TEXT = (
    "suite", "experiment", "case", "launch", "transport", "strategy", "collective", "fabric", "workload", "evidence", "status", "failure", "failure_message",
    "arm", "program", "framework", "launcher", "operation", "size", "code", "machine", "started_at", "stop", "excluded",
)  # fmt: skip
TAG = "tag_"
"""Before the name of an axis (spec/tags.py), for the column with the case's tag on it."""
_WHOLE = ("ranks", "plan_index", "order", "seed", "minibatch", "threads_per_rank")


def collect(plan: Sequence[PlannedLaunch], store: Store, metrics: Mapping[str, Metric], stops: Stops | None = None) -> pa.Table:
    """The table of a plan. Of several machines or versions of the code only the one that finished last is used, and of its records of a launch the ok one.

    `stop` and `stop_half_width` say of every row's case what decided its number of launches (null: the experiment never ran to an end here)."""
    chosen = _chosen(plan, store)
    rows = [_row(launch, chosen.get((launch.case.case_id, launch.plan_index)), store, metrics) | _stop(launch, stops) for launch in plan]
    kinds = [
        *((name, pa.string()) for name in (*_TEXT, *(TAG + axis for axis in AXES))),
        *((name, pa.int64()) for name in _WHOLE),
        ("oversubscribed", pa.bool_()),
    ]
    kinds += [(name, pa.float64()) for name in ("wall_s", "stop_half_width", *metrics)]
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def _stop(launch: PlannedLaunch, stops: Stops | None) -> dict[str, Any]:
    found = stops.case(launch.case.case_id) if stops else None
    return {"stop": found.decided, "stop_half_width": found.half_width_share} if found else {}


def write_table(table: pa.Table, path: Path) -> None:
    """Parquet, all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    pq.write_table(table, draft)
    draft.rename(path)


def _chosen(plan: Sequence[PlannedLaunch], store: Store) -> dict[tuple[str, int], Record]:
    wanted = {(launch.case.case_id, launch.plan_index) for launch in plan}
    found = [record for case_id in sorted({case_id for case_id, _ in wanted}) for record in store.records(case_id)]
    found = sorted((record for record in found if (record.case_id, record.plan_index) in wanted), key=lambda record: record.started_at)
    latest = _latest(found)
    chosen: dict[tuple[str, int], Record] = {}
    for record in found:
        key = (record.case_id, record.plan_index)
        last = latest[record.case.fabric == "simulated"]
        same_version = (record.code.digest, record.machine) == (last.code.digest, last.machine)
        if same_version and (record.status == "ok" or key not in chosen or chosen[key].status != "ok"):
            chosen[key] = record
    return chosen


def _latest(found: Sequence[Record]) -> dict[bool, Record]:
    """The record that finished last, of launches (False) and of predictions (True), which follow from other code."""
    latest = {}
    for simulated in (False, True):
        of_kind = [record for record in found if (record.case.fabric == "simulated") is simulated]
        if of_kind:
            latest[simulated] = ([record for record in of_kind if record.status == "ok"] or of_kind)[-1]
    return latest


def _row(launch: PlannedLaunch, record: Record | None, store: Store, metrics: Mapping[str, Metric]) -> dict[str, Any]:
    case = launch.case
    row = {name: getattr(case, name, None) for name in (*_TEXT, *_WHOLE)}
    row |= {"case": case.case_id, "plan_index": launch.plan_index, "order": launch.order, "seed": launch.seed, "status": MISSING}
    row |= {TAG + axis: tag for axis, tag in tags_of(case).items()}
    if record is None:
        return row
    row |= {"launch": record.launch, "evidence": record.evidence, "status": record.status, "size": record.size, "oversubscribed": record.oversubscribed}
    row |= {"code": record.code.digest, "machine": record.machine, "started_at": record.started_at, "wall_s": record.wall_s}
    row |= {"excluded": record.excluded or None}
    if record.failure is not None:
        row |= {"failure": record.failure.code, "failure_message": record.failure.message}
    if record.status == "ok":
        samples = store.samples(record).to_pandas()
        row |= {name: metric(record, samples) for name, metric in metrics.items()}
    return row
