"""One table per experiment and size: a row per planned launch, also for those that failed, cannot run here or were
never tried."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from scaleproof.record.metric_values import Metric, MetricValues
from scaleproof.record.rows import TAG, Row, of_case
from scaleproof.record.stops import Stops
from scaleproof.record.store import Store
from scaleproof.record.versions import Ran, last_version
from scaleproof.spec.tags import AXES

if TYPE_CHECKING:
    from scaleproof.spec.plan import PlannedLaunch

__all__ = ["MISSING", "TAG", "collect", "write_table"]

MISSING = "missing"
"""Status of a planned launch without any record."""
_TEXT = (
    "suite",
    "experiment",
    "case",
    "launch",
    "transport",
    "strategy",
    "collective",
    "fabric",
    "workload",
    "evidence",
    "status",
    "failure",
    "failure_message",
    "arm",
    "program",
    "framework",
    "launcher",
    "operation",
    "size",
    "code",
    "machine",
    "started_at",
    "stop",
    "excluded",
)
_WHOLE = ("ranks", "plan_index", "order", "seed", "minibatch", "threads_per_rank")
_OF_RECORD = (
    "launch",
    "size",
    "status",
    "failure",
    "failure_message",
    "evidence",
    "oversubscribed",
    "excluded",
    "code",
    "machine",
    "started_at",
    "wall_s",
)


def collect(
    plan: Sequence[PlannedLaunch],
    store: Store,
    metrics: Mapping[str, Metric],
    stops: Stops | None = None,
    version: str = "",
) -> pa.Table:
    """The table of a plan. Of several machines or versions of the code only the one that finished last is used, and of
    its records of a launch the ok one.

    `stop` and `stop_half_width` say of every row's case what decided its number of launches (null: the experiment never
    ran to an end here). `version`: of the metrics' code; their values are kept under it from one time to the next
    (record/metric_values.py)."""
    cases = {id(launch.case): launch.case for launch in plan}
    told = {key: of_case(case) | {"case": case.case_id} | _stop(case.case_id, stops) for key, case in cases.items()}
    planned = [(launch, told[id(launch.case)]) for launch in plan]
    chosen, values = (
        _chosen({(case["case"], launch.plan_index) for launch, case in planned}, store),
        MetricValues(store, metrics, version),
    )
    values.prepare([(row["case"], row["launch"]) for row in chosen.values() if row["status"] == "ok"])
    rows = [case | _row(launch, chosen.get((case["case"], launch.plan_index)), values) for launch, case in planned]
    values.keep()
    kinds = (
        dict.fromkeys((*_TEXT, *(TAG + axis for axis in AXES)), pa.string())
        | dict.fromkeys(_WHOLE, pa.int64())
        | {"oversubscribed": pa.bool_()}
    )
    kinds |= dict.fromkeys(("wall_s", "stop_half_width", *metrics), pa.float64())
    return pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))


def _stop(case_id: str, stops: Stops | None) -> dict[str, Any]:
    found = stops.case(case_id) if stops else None
    return {"stop": found.decided, "stop_half_width": found.half_width_share} if found else {}


def write_table(table: pa.Table, path: Path) -> None:
    """Parquet, all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    pq.write_table(table, draft)
    draft.rename(path)


def _chosen(wanted: Collection[tuple[str, int]], store: Store) -> dict[tuple[str, int], Row]:
    found = [row for case_id in sorted({case_id for case_id, _ in wanted}) for row in store.rows(case_id)]
    found = sorted(
        (row for row in found if (row["case"], row["plan_index"]) in wanted), key=lambda row: str(row["started_at"])
    )
    chosen: dict[tuple[str, int], Row] = {}
    for row in last_version(found, _ran):
        key = (row["case"], row["plan_index"])
        if row["status"] == "ok" or key not in chosen or chosen[key]["status"] != "ok":
            chosen[key] = row
    return chosen


def _ran(row: Row) -> Ran:
    return Ran(row["fabric"], row["machine"], row["code"], row["status"], str(row["started_at"]))


def _row(launch: PlannedLaunch, found: Row | None, values: MetricValues) -> dict[str, Any]:
    """What is not the case's own."""
    row: dict[str, Any] = {
        "plan_index": launch.plan_index,
        "order": launch.order,
        "seed": launch.seed,
        "status": MISSING,
    }
    if found is not None:
        row |= {name: found[name] for name in _OF_RECORD}
    if found is not None and found["status"] == "ok":
        row |= values.of(found["case"], found["launch"])
    return row
