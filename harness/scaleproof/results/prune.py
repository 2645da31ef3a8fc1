"""Which records may be removed, for which reasons, which of them are kept, and their removal."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from scaleproof.launch.results_lock import locked
from scaleproof.record.rows import Row
from scaleproof.record.stops import decided_plan
from scaleproof.record.store import Store
from scaleproof.record.used_code import is_current
from scaleproof.results.views import claims
from scaleproof.spec.suite import Suite

REASONS = {
    "old-code": "used code that has changed since",
    "failed": "no good launch",
    "unplanned": "in no plan of its suite",
}
"""Reasons to remove a record; without a reason, all records that meet the conditions are removed."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record that may be removed."""

    row: Row
    why: tuple[str, ...]
    """Reasons, keys of REASONS."""
    kept_because: str
    """Why it is kept all the same; empty if it is not."""
    cited: bool
    """Whether a verdict rests on it."""
    nbytes: int
    """Bytes on the disk."""


def candidates(
    results: Path,
    launches: pa.Table,
    chosen: pa.Table,
    reasons: Sequence[str],
    suites: Iterable[Suite],
    even_last: bool,
) -> list[Candidate]:
    """The chosen rows to which a reason applies, or all of them without a reason. The last good launch of a case is
    kept unless `even_last`. `launches`: all rows of the folder."""
    plans = _planned_launches(results, suites) if "unplanned" in reasons else {}
    matching = [
        (row, why)
        for row in chosen.to_pylist()
        if (why := [reason for reason in reasons if _applies(results, reason, row, plans)]) or not reasons
    ]
    last = {} if even_last else _last_good(launches.to_pylist(), {row["launch"] for row, _ in matching})
    cited = {launch for runs in claims(results)["runs"].to_pylist() for launch in runs}
    return [
        Candidate(
            row,
            tuple(why),
            "the last good launch of its case" if last.get(row["case"]) == row["launch"] else "",
            row["launch"] in cited,
            _nbytes(results, row),
        )
        for row, why in matching
    ]


def remove(results: Path, records: Iterable[Candidate]) -> int:
    """Remove the records from the store and return their number. Each is renamed first, so that no reader sees a part
    of one. No supervisor may run at the same time."""
    count = 0
    with locked(results):
        for record in records:
            folder, aside = _folder(results, record.row), results / "staging" / record.row["launch"]
            aside.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(aside)
            shutil.rmtree(aside)
            if not any(folder.parent.iterdir()):
                folder.parent.rmdir()
            count += 1
    return count


def _applies(results: Path, reason: str, row: Row, plans: Mapping[str, set[tuple[str, int]]]) -> bool:
    if reason == "old-code":
        record, _ = Store(results).load(row["launch"])
        return not is_current(record.code, record.case.fabric)
    if reason == "failed":
        return bool(row["status"] != "ok")
    return row["suite"] in plans and (row["case"], row["plan_index"]) not in plans[row["suite"]]


def _planned_launches(results: Path, suites: Iterable[Suite]) -> dict[str, set[tuple[str, int]]]:
    """Case id and repetition of every launch that any size plans, by suite. Records of suites that are not here do not
    count as unplanned."""
    return {
        suite.name: {
            (launch.case.case_id, launch.plan_index)
            for name, experiment in suite.experiments.items()
            for size in experiment.sizes
            for launch in decided_plan(results, suite, name, size)
        }
        for suite in suites
    }


def _last_good(rows: Sequence[Row], removed: set[str]) -> dict[str, str]:
    """The latest good launch by case, for cases whose good launches would all be removed."""
    good: dict[str, list[Row]] = {}
    for row in rows:
        if row["status"] == "ok":
            good.setdefault(row["case"], []).append(row)
    return {
        case_id: max(rows_of_case, key=lambda row: str(row["started_at"]))["launch"]
        for case_id, rows_of_case in good.items()
        if all(row["launch"] in removed for row in rows_of_case)
    }


def _folder(results: Path, row: Row) -> Path:
    return results / "runs" / str(row["case"]) / str(row["launch"])


def _nbytes(results: Path, row: Row) -> int:
    return sum(path.stat().st_size for path in _folder(results, row).iterdir())
