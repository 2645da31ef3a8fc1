"""A launch as one flat row, for tables, lists and the index."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase
from scaleproof.spec.tags import AXES, tags_of

TAG = "tag_"
"""Prefix of the column with the case's tag on an axis (spec/tags.py)."""
OF_CASE_TEXT = (
    "suite",
    "experiment",
    "arm",
    "program",
    "transport",
    "strategy",
    "collective",
    "fabric",
    "workload",
    "dataset",
    "framework",
    "launcher",
    "operation",
)
OF_CASE_INTEGER = ("ranks", "minibatch", "threads_per_rank")
"""Fields of a case with their own columns, by type; null if a program does not have the field."""
OF_RECORD: Mapping[str, pa.DataType] = {
    "case": pa.string(),
    "launch": pa.string(),
    "plan_index": pa.int64(),
    "campaign": pa.int64(),
    "campaign_id": pa.string(),
    "replaces": pa.string(),
    "seed": pa.int64(),
    "size": pa.string(),
    "status": pa.string(),
    "failure": pa.string(),
    "failure_message": pa.string(),
    "evidence": pa.string(),
    "oversubscribed": pa.bool_(),
    "shared_cores": pa.bool_(),
    "excluded": pa.string(),
    "code": pa.string(),
    "used_code": pa.string(),
    "commit": pa.string(),
    "machine": pa.string(),
    "started_at": pa.string(),
    "wall_s": pa.float64(),
    "warnings": pa.string(),
    "fields": pa.string(),
}
"""Columns of the record. `warnings`: codes separated by blanks; `fields`: all fields of the case as JSON, with the
options of its plugins as `KIND.OPTION`."""
OF_CASE: Mapping[str, pa.DataType] = (
    dict.fromkeys(OF_CASE_TEXT, pa.string())
    | dict.fromkeys(OF_CASE_INTEGER, pa.int64())
    | {TAG + axis: pa.string() for axis in AXES}
)
Row = Mapping[str, Any]


def of_case(case: AnyCase) -> dict[str, Any]:
    """Values of the columns OF_CASE."""
    fields = {name: case.value(name) for name in (*OF_CASE_TEXT, *OF_CASE_INTEGER)}
    return fields | {TAG + axis: tag for axis, tag in tags_of(case).items()}


def of_record(record: Record) -> dict[str, Any]:
    """Values of the columns OF_CASE and OF_RECORD."""
    failure = record.failure
    return of_case(record.case) | {
        "case": record.case_id,
        "launch": record.launch,
        "plan_index": record.plan_index,
        "campaign": record.campaign,
        "campaign_id": record.campaign_id,
        "replaces": record.replaces,
        "seed": record.seed,
        "size": record.size,
        "status": record.status,
        "failure": failure and failure.code,
        "failure_message": failure and failure.message,
        "evidence": record.evidence,
        "oversubscribed": record.oversubscribed,
        "shared_cores": record.shared_cores,
        "excluded": record.excluded or None,
        "code": record.code.digest,
        "used_code": record.code.used,
        "commit": record.code.commit,
        "machine": record.machine,
        "started_at": record.started_at,
        "wall_s": record.wall_s,
        "warnings": " ".join(dict.fromkeys(warning.code for warning in record.warnings)),
        "fields": json.dumps(record.case.complete()),
    }
