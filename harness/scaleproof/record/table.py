"""The table of an experiment at a size: a row per planned launch (several where merged folders have its campaign), also
for those that failed, cannot run here, or were never started."""

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
    "campaign_id",
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
_INTEGER = ("ranks", "plan_index", "campaign", "order", "seed", "minibatch", "threads_per_rank")
_OF_RECORD = (
    "launch",
    "campaign_id",
    "size",
    "status",
    "failure",
    "failure_message",
    "evidence",
    "oversubscribed",
    "shared_cores",
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
    """The table of a plan. If records are from several machines or versions of the code, only those of the last one
    count; of several records of a launch in a campaign, one that ended well is used.

    Columns `stop` and `stop_half_width` say what decided the number of launches of the case (null: the experiment did
    not run to its end here). `version`: digest of the metrics' code, under which their values are stored
    (record/metric_values.py)."""
    cases = {id(launch.case): launch.case for launch in plan}
    of_cases = {key: of_case(case) | {"case": case.case_id} for key, case in cases.items()}
    planned = [(launch, of_cases[id(launch.case)]) for launch in plan]
    chosen = _chosen({(case["case"], launch.plan_index) for launch, case in planned}, store)
    values = MetricValues(store, metrics, version)
    values.prepare([(row["case"], row["launch"]) for rows in chosen.values() for row in rows if row["status"] == "ok"])
    rows = [
        case | _stop(case["case"], launch.campaign, stops) | _row(launch, recorded, values)
        for launch, case in planned
        for recorded in chosen.get((case["case"], launch.plan_index), [None])
    ]
    values.keep()
    kinds = (
        dict.fromkeys((*_TEXT, *(TAG + axis for axis in AXES)), pa.string())
        | dict.fromkeys(_INTEGER, pa.int64())
        | dict.fromkeys(("oversubscribed", "shared_cores"), pa.bool_())
    )
    kinds |= dict.fromkeys(("wall_s", "stop_half_width", *metrics), pa.float64())
    return pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))


def _stop(case_id: str, campaign: int, stops: Stops | None) -> dict[str, Any]:
    stop = stops.case(case_id, campaign) if stops else None
    return {"stop": stop.decided, "stop_half_width": stop.half_width_share} if stop else {}


def write_table(table: pa.Table, path: Path) -> None:
    """Write a Parquet file by one rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    pq.write_table(table, draft)
    draft.rename(path)


def _chosen(launches: Collection[tuple[str, int]], store: Store) -> dict[tuple[str, int], list[Row]]:
    """The record of each launch; one of each block where merged folders have the same campaign of the plan."""
    rows = [row for case_id in sorted({case_id for case_id, _ in launches}) for row in store.rows(case_id)]
    planned = [row for row in rows if (row["case"], row["plan_index"]) in launches]
    chosen: dict[tuple[str, int], dict[str, Row]] = {}
    ordered = sorted(planned, key=lambda row: str(row["started_at"]))
    for row in last_version(ordered, _ran, lambda row: store.load(row["launch"])[0].code.files):
        blocks, name = chosen.setdefault((row["case"], row["plan_index"]), {}), row["replaces"] or row["campaign_id"]
        if row["status"] == "ok" or name not in blocks or blocks[name]["status"] != "ok":
            blocks[name] = row
    return {launch: _without_retried(list(blocks.values())) for launch, blocks in chosen.items()}


def _without_retried(rows: list[Row]) -> list[Row]:
    """Without launches that failed before one ended well: in a block that failed as a whole, a later call of `run` has
    made them again under an id of its own."""
    good = [row for row in rows if row["status"] == "ok"]
    last = max((str(row["started_at"]) for row in good), default="")
    return [row for row in rows if row["status"] == "ok" or str(row["started_at"]) > last]


def _ran(row: Row) -> Ran:
    return Ran(row["case"], row["fabric"], row["machine"], row["used_code"], row["status"], str(row["started_at"]))


def _row(launch: PlannedLaunch, recorded: Row | None, values: MetricValues) -> dict[str, Any]:
    """The columns that do not follow from the case."""
    row: dict[str, Any] = {
        "plan_index": launch.plan_index,
        "campaign": launch.campaign,
        "order": launch.order,
        "seed": launch.seed,
        "status": MISSING,
    }
    if recorded is not None:
        row |= {name: recorded[name] for name in _OF_RECORD}
    if recorded is not None and recorded["status"] == "ok":
        row |= values.of(recorded["case"], recorded["launch"])
    return row
