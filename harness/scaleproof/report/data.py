"""The data of the pages: judged claims, the collected table of planned launches, and their records and samples."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from scaleproof.calibrate.attainable import Attained, NoBound, attainable
from scaleproof.claims.claims_file import ClaimResult, ClaimsFile, Label, read_claims
from scaleproof.claims.claims_yaml import VALIDATION
from scaleproof.claims.evidence_labels import Findings
from scaleproof.claims.finished_launch import times_count
from scaleproof.claims.launch_details import evidence_details
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.claims.noise_floor import base_metric
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.core.record_schema import Record
from scaleproof.record.index import Index
from scaleproof.record.machine import MachineProfile, read_profile
from scaleproof.record.store import Store
from scaleproof.record.table import MISSING
from scaleproof.results.imported_logs import KeptLog, kept_logs
from scaleproof.spec.suite import Suite

STATUSES = ("ok", "failed", "not_runnable", MISSING)
"""Statuses of a planned launch. MISSING: it has no record, since it was never started or was interrupted."""


@dataclass(frozen=True)
class Run:
    """One planned launch: its row of the run table, and its record if there is one."""

    row: dict[str, Any]
    record: Record | None = None
    store: Store | None = None
    profile: MachineProfile | None = None
    """The calibration of its machine; None where there is none."""
    metrics: Mapping[str, Metric] = field(default_factory=lambda: METRICS)
    """The metrics of its suite."""

    @property
    def launch(self) -> str:
        """Its id; empty without a record."""
        return self.record.launch if self.record else ""

    @property
    def status(self) -> str:
        """One of STATUSES."""
        return str(self.row["status"])

    @property
    def folder(self) -> Path | None:
        """The folder of its record and logs; None without a record."""
        return self.store.folder(self.record) if self.store and self.record else None

    def attained(self, metric: str, value: float, nbytes: int | None = None) -> Attained | None:
        """A rate of this launch against what its machine can do; None for what is no rate."""
        if self.record is None or metric not in self.metrics:
            return None
        return attainable(self.record, self.metrics[metric], value, self.profile, nbytes)

    @property
    def hollow(self) -> bool:
        """Whether it is drawn hollow: not measured, or with more ranks than cores."""
        return self.record is not None and (self.record.evidence != "measured" or self.record.oversubscribed)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """All samples of the record."""
        assert self.store is not None and self.record is not None, "a launch without a record has no samples"
        return self.store.frame(self.record)

    def metric(self, name: str) -> float | None:
        """A metric of the launch from the run table; None if it has no value."""
        value = self.row.get(name)
        return None if value is None or math.isnan(value) else float(value)


@dataclass(frozen=True)
class SuiteData:
    """One suite at one size."""

    suite: Suite
    claims: list[ClaimResult]
    runs: list[Run]
    findings: Findings = Findings()
    """Findings of suite validation about evidence that is not measured."""
    judged_by: str = ""
    """The version of what judged the claims (`judging_version`); empty where it was not recorded."""
    imported: tuple[KeptLog, ...] = ()
    """The user's own logs of collectives (`scaleproof import`)."""

    @property
    def name(self) -> str:
        """Name of the suite and of its page."""
        return self.suite.name

    @cached_property
    def launches(self) -> dict[str, Run]:
        """Launches with a record, by id."""
        return {run.launch: run for run in self.runs if run.record}

    def completed(self, program: str) -> list[Run]:
        """Launches of a program that ended well, without traced and excluded ones, whose times do not count."""
        good = [run.record for run in self.runs if run.status == "ok" and run.record is not None]
        chosen = {record.launch for record in good if record.case.program == program and times_count(record)}
        return [run for run in self.runs if run.launch in chosen]

    def label(self, runs: Iterable[Run]) -> Label | None:
        """The label of evidence from these launches; None in suite validation itself, which decides it, and if all are
        measured."""
        return (
            None
            if self.name == VALIDATION
            else self.findings.label(run.record for run in runs if run.record is not None)
        )

    def evidence_text(self, run: Run) -> str:
        """A launch's level of evidence as shown, with its label."""
        assert run.record is not None
        label = self.label([run])
        return run.record.evidence_text + (f" ({label.text})" if label else "")

    def attained(self, claim: ClaimResult) -> Attained | None:
        """A claim's rate against what the machine can do; None for what is no rate."""
        if claim.metric is None or claim.ours is None or claim.base is not None:
            return None
        return self._attained(claim, claim.metric, claim.ours, {})

    def base_attained(self, claim: ClaimResult) -> Attained | None:
        """The same of the rate of its base."""
        if claim.metric is None or claim.base is None or claim.base.value is None:
            return None
        metric = self._metrics.get(claim.metric)
        name = claim.metric if metric is None else base_metric(metric).name
        return self._attained(claim, name, claim.base.value, claim.base.select)

    @property
    def _metrics(self) -> Mapping[str, Metric]:
        return self.runs[0].metrics if self.runs else METRICS

    def _attained(self, claim: ClaimResult, metric: str, value: float, select: Mapping[str, Any]) -> Attained | None:
        """`select`: which of the claim's launches have the value."""
        runs = [self.launches[launch] for launch in claim.runs if launch in self.launches]
        for run in runs:
            if run.record is not None and chosen(run.record.case, select):
                return run.attained(metric, value)
        is_rate = metric in self._metrics and self._metrics[metric].is_rate
        return NoBound("its launches are not in these results") if is_rate else None

    def counts(self) -> dict[str, int]:
        """Number of launches by status, and in total as `planned`."""
        by_status = Counter(run.status for run in self.runs)
        return {"planned": len(self.runs), **{status: by_status[status] for status in STATUSES}}


def load(results: Path, size: str, suites: Iterable[Suite]) -> list[SuiteData]:
    """The data of all suites that have this size, or claims judged at it (by arithmetic), in their order."""
    index, findings = Index(results), Findings.read(results)
    store = Store(results, index=index)
    profile_of = lru_cache(partial(read_profile, results))
    cases = {launch: case_id for case_id, launch in index.stamps}
    imported = kept_logs(results)
    return [
        replace(_suite(results, size, suite, store, cases, findings, profile_of), imported=imported)
        for suite in suites
        if any(size in experiment.sizes for experiment in suite.experiments.values())
        or (results / "claims" / f"{suite.name}.{size}.json").exists()
    ]


def tables(results: Path, size: str, suite: Suite) -> list[pa.Table]:
    """The run tables of a suite's experiments, in the order of suite.yaml, as far as they exist."""
    paths = [
        results / "tables" / f"{suite.name}.{name}.{size}.parquet"
        for name, experiment in suite.experiments.items()
        if size in experiment.sizes
    ]
    return [pq.read_table(path) for path in paths if path.exists()]


def _suite(
    results: Path,
    size: str,
    suite: Suite,
    store: Store,
    cases: dict[str, str],
    findings: Findings,
    profile_of: Callable[[str], MachineProfile | None],
) -> SuiteData:
    rows = [row for table in tables(results, size, suite) for row in table.to_pylist()]
    path = results / "claims" / f"{suite.name}.{size}.json"
    judged = read_claims(path) if path.exists() else ClaimsFile(claims=())
    launches = {row["launch"] for row in rows} | {launch for claim in judged.claims for launch in claim.runs}
    records = {
        launch: record
        for launch in launches & cases.keys()
        if (record := store.record(cases[launch], launch)) is not None
    }
    metrics = suite_metrics(suite.folder)
    runs = [
        Run(row, record, store, None if record is None else profile_of(record.machine), metrics)
        for row, record in ((row, records.get(row["launch"])) for row in rows)
    ]
    claims = [_current(claim, records, findings) for claim in judged.claims]
    return SuiteData(suite, claims, runs, findings, judged.judged_by.get(suite.name, ""))


def _current(claim: ClaimResult, records: dict[str, Record], findings: Findings) -> ClaimResult:
    """The claim with the current label from suite validation, which may have been judged after this claim. Of files of
    versions 1 and 2 the details of the evidence come from the records."""
    used = [records[launch] for launch in claim.runs if launch in records]
    update: dict[str, Any] = {}
    if claim.schema_version < 3:
        update["evidence_details"] = evidence_details(used, claim.evidence)
    if claim.label is not None:
        update["label"] = findings.label(used)
    return claim.model_copy(update=update)


def anchor(text: str) -> str:
    """An id for HTML: the text itself if all characters are safe, else its safe characters and a digest."""
    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in text)
    return safe if safe == text else f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
