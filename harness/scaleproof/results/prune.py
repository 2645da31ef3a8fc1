"""Which records may go, why, and which stay all the same; and their removal, one rename each."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from scaleproof.launch.results_lock import locked
from scaleproof.record.digest import code_digest
from scaleproof.record.rows import Row
from scaleproof.record.stops import decided_plan
from scaleproof.results.views import claims
from scaleproof.spec.suite import Suite

REASONS = {
    "old-code": "ran with other code than this",
    "failed": "no good launch",
    "unplanned": "in no plan of its suite",
}
"""What may be asked to go; without any of them, whatever meets the conditions goes."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One record that may go: for which reasons, what stays with it in the way, and how many bytes it takes."""

    row: Row
    why: tuple[str, ...]
    kept: str
    cited: bool
    """Whether a verdict rests on it."""
    nbytes: int


def candidates(
    results: Path,
    launches: pa.Table,
    chosen: pa.Table,
    reasons: Sequence[str],
    suites: Iterable[Suite],
    even_last: bool,
) -> list[Candidate]:
    """Of the chosen rows those that a reason holds for; the last good launch of a case stays unless `even_last`.
    `launches`: all of the folder."""
    plans = _planned(results, suites) if "unplanned" in reasons else {}
    found = [
        (row, why)
        for row in chosen.to_pylist()
        if (why := [reason for reason in reasons if _holds(reason, row, plans)]) or not reasons
    ]
    last = {} if even_last else _last_good(launches.to_pylist(), {row["launch"] for row, _ in found})
    cited = {launch for runs in claims(results)["runs"].to_pylist() for launch in runs}
    return [
        Candidate(
            row,
            tuple(why),
            "the last good launch of its case" if last.get(row["case"]) == row["launch"] else "",
            row["launch"] in cited,
            _size(results, row),
        )
        for row, why in found
    ]


def remove(results: Path, going: Iterable[Candidate]) -> int:
    """Take them out of the store; returns how many. Each leaves by one rename, so that no half of it is ever read; a
    supervisor may not run meanwhile."""
    count = 0
    with locked(results):
        for one in going:
            folder, aside = _folder(results, one.row), results / "staging" / one.row["launch"]
            aside.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(aside)
            shutil.rmtree(aside)
            if not any(folder.parent.iterdir()):
                folder.parent.rmdir()
            count += 1
    return count


def _holds(reason: str, row: Row, plans: Mapping[str, set[tuple[str, int]]]) -> bool:
    if reason == "old-code":
        return bool(row["code"] != code_digest(row["fabric"]))
    if reason == "failed":
        return bool(row["status"] != "ok")
    return row["suite"] in plans and (row["case"], row["plan_index"]) not in plans[row["suite"]]


def _planned(results: Path, suites: Iterable[Suite]) -> dict[str, set[tuple[str, int]]]:
    """By suite, case and repetition of every launch that some size of it plans; records of suites that are not here are
    in no way unplanned."""
    return {
        suite.name: {
            (launch.case.case_id, launch.plan_index)
            for name, experiment in suite.experiments.items()
            for size in experiment.sizes
            for launch in decided_plan(results, suite, name, size)
        }
        for suite in suites
    }


def _last_good(rows: Sequence[Row], going: set[str]) -> dict[str, str]:
    """By case, the latest good launch, where every good one of the case is to go."""
    good: dict[str, list[Row]] = {}
    for row in rows:
        if row["status"] == "ok":
            good.setdefault(row["case"], []).append(row)
    return {
        case_id: max(found, key=lambda row: str(row["started_at"]))["launch"]
        for case_id, found in good.items()
        if all(row["launch"] in going for row in found)
    }


def _folder(results: Path, row: Row) -> Path:
    return results / "runs" / str(row["case"]) / str(row["launch"])


def _size(results: Path, row: Row) -> int:
    return sum(path.stat().st_size for path in _folder(results, row).iterdir())
