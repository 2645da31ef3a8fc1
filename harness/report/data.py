"""What the pages are made from: claims as judged, planned launches as collected, records and samples of those that ran."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from harness.claims.schema import ClaimResult, ClaimsFile
from harness.record.schema import Record
from harness.record.store import Store
from harness.spec.suite import Suite

STATUSES = ("ok", "failed", "not_runnable", "missing")
"""Of a planned launch; `missing`: no record, because it was never started or was interrupted."""


@dataclass(frozen=True)
class Run:
    """One planned launch: its row of the run table and, when it left one, its record."""

    row: dict[str, Any]
    record: Record | None = None
    store: Store | None = None

    @property
    def launch(self) -> str:
        """Its id; empty when it never ran."""
        return self.record.launch if self.record else ""

    @property
    def status(self) -> str:
        """One of STATUSES."""
        return str(self.row["status"])

    @property
    def folder(self) -> Path | None:
        """Where its record and logs lie."""
        return self.store.folder(self.record) if self.store and self.record else None

    @property
    def hollow(self) -> bool:
        """Drawn hollow: not measured, or more ranks than cores."""
        return self.record is not None and (self.record.evidence != "measured" or self.record.oversubscribed)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """All samples, empty columns when there is no record."""
        assert self.store is not None and self.record is not None, "a launch without a record has no samples"
        return self.store.samples(self.record).to_pandas()

    def metric(self, name: str) -> float | None:
        """A per-launch metric of the table."""
        value = self.row.get(name)
        return None if value is None or pd.isna(value) else float(value)


@dataclass(frozen=True)
class SuiteData:
    """One suite at one size."""

    suite: Suite
    claims: list[ClaimResult]
    runs: list[Run]
    launches: dict[str, Run] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The suite's name, which is its page's."""
        return self.suite.name

    def done(self, program: str) -> list[Run]:
        """Launches of a program that ended well."""
        return [run for run in self.runs if run.status == "ok" and run.record is not None and run.record.case.program == program]

    def counts(self) -> dict[str, int]:
        """Planned launches by status; they add up to `planned`."""
        found = Counter(run.status for run in self.runs)
        return {"planned": len(self.runs), **{status: found[status] for status in STATUSES}}


def load(results: Path, size: str, suites: Iterable[Suite]) -> list[SuiteData]:
    """All suites that have this size, in the order given."""
    store = Store(results)
    records = {record.launch: record for record in store.records()}
    return [_suite(results, size, suite, store, records) for suite in suites if any(size in found.sizes for found in suite.experiments.values())]


def tables(results: Path, size: str, suite: Suite) -> pd.DataFrame:
    """The run tables of a suite's experiments, one below the other; empty when nothing was collected yet."""
    paths = [results / "tables" / f"{suite.name}.{name}.{size}.parquet" for name, found in suite.experiments.items() if size in found.sizes]
    frames = [pd.read_parquet(path) for path in paths if path.exists()]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _suite(results: Path, size: str, suite: Suite, store: Store, records: dict[str, Record]) -> SuiteData:
    rows = tables(results, size, suite).to_dict("records")
    runs = [Run({str(name): value for name, value in row.items()}, records.get(str(row["launch"])), store) for row in rows]
    return SuiteData(suite, _claims(results, size, suite), runs, {run.launch: run for run in runs if run.record})


def _claims(results: Path, size: str, suite: Suite) -> list[ClaimResult]:
    path = results / "claims" / f"{suite.name}.{size}.json"
    return list(ClaimsFile.model_validate_json(path.read_bytes()).claims) if path.exists() else []


def anchor(text: str) -> str:
    """An id for HTML: as it is when harmless, else a digest behind its harmless characters."""
    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in text)
    return safe if safe == text else f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
