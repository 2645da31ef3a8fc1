"""Verdicts and launches of the reference run as CSV, two files a suite: rows change one by one, and a suite takes less
than 200 kB."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scaleproof.claims.claims_file import ClaimResult
from tools.reference import REFERENCE

DIGITS = 6


class Verdict(NamedTuple):
    """A claim of a suite at one level of evidence; what the paper says of it stands in the suite's published.yaml and
    claims.yaml."""

    suite: str  # the name of the file, not a column
    id: str
    kind: str
    origin: str
    evidence: str
    standing: str  # label of the evidence by suite validation; empty where there is none
    verdict: str  # empty where the value is not judged
    published: float | None
    ours: float | None
    unit: str
    low: float | None
    high: float | None
    launches: int | None
    noise_floor: float | None  # a share
    details: str = ""  # of the evidence: soft-RoCE, dilation
    work_factor: str = ""  # of reduced networks beside a published value: the full network's work over theirs


COLUMNS = Verdict._fields[1:]

NUMBERS = ("published", "ours", "low", "high", "noise_floor")


def write(reports: Path) -> None:
    """Read claims.json and runs.csv of a report."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    claims = json.loads((reports / "claims.json").read_text())["claims"]
    with (reports / "runs.csv").open(newline="") as source:
        runs = list(csv.DictReader(source))
    for table in ("verdicts", "runs"):
        for stale in REFERENCE.glob(f"*.{table}.csv"):  # of a suite that this run has not
            stale.unlink()
    for suite in dict.fromkeys(claim["suite"] for claim in claims):
        rows = [verdict_of(claim) for claim in claims if claim["suite"] == suite]
        _path(suite, "verdicts").write_text(_text(COLUMNS, [row._asdict() for row in rows]))
        mine = [run for run in runs if run["suite"] == suite]
        columns = [name for name in (mine[0] if mine else ()) if _stored(name) and any(run[name] for run in mine)]
        _path(suite, "runs").write_text(_text(columns, mine))


def _stored(column: str) -> bool:
    """Tags follow from a launch's case and are in the raw records: they would be a fifth of the file."""
    return not column.startswith("tag_")


def verdict_of(claim: Mapping[str, Any]) -> Verdict:
    """The stored fields of an object of claims.json."""
    interval, label = claim["interval"] or {}, claim.get("label") or {}
    return Verdict(
        suite=claim["suite"],
        id=claim["id"],
        kind=claim["kind"],
        origin=claim["origin"],
        evidence=claim["evidence"] or "",
        standing=label.get("standing", ""),
        verdict=claim["verdict"] or "",
        published=claim["published"],
        ours=claim["ours"],
        unit=claim["unit"],
        low=interval.get("low"),
        high=interval.get("high"),
        launches=claim["n"],
        noise_floor=claim["noise_floor"],
        details=" / ".join(claim["evidence_details"]),
        work_factor=ClaimResult.model_validate(claim).work_factor,
    )


def read(reference: Path = REFERENCE) -> list[Verdict]:
    """The verdicts of all suites."""
    verdicts = []
    for path in sorted(reference.glob("*.verdicts.csv")):
        with path.open(newline="") as source:
            suite = path.name.partition(".")[0]
            verdicts += [_parsed({"suite": suite, **row}) for row in csv.DictReader(source)]
    return verdicts


def _parsed(row: dict[str, str]) -> Verdict:
    values: dict[str, Any] = dict(row)
    values |= {name: float(row[name]) if row[name] else None for name in NUMBERS}
    values["launches"] = int(row["launches"]) if row["launches"] else None
    return Verdict(**values)


def _path(suite: str, table: str) -> Path:
    return REFERENCE / f"{suite}.{table}.csv"


def _text(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[_short(row[name]) for name in columns] for row in rows])
    return target.getvalue()


def _short(cell: Any) -> Any:
    """Six significant digits of a float; any other value unchanged."""
    if isinstance(cell, str) and "." in cell:
        try:
            cell = float(cell)
        except ValueError:
            return cell
    return f"{cell:.{DIGITS}g}" if isinstance(cell, float) else cell
