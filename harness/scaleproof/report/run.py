"""The page of one launch: how it ended, the command that repeats it, every rank, and the logs."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from scaleproof.calibrate.attained_rate import rate_lines
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import RankStatus, Record
from scaleproof.record.host import usable_cores
from scaleproof.record.parallel import in_parallel
from scaleproof.record.write import RUN
from scaleproof.report import inputs, nodes, surroundings
from scaleproof.report.data import Run, SuiteData
from scaleproof.report.figures.sparkline import sparkline
from scaleproof.report.numbers import nbytes, significant
from scaleproof.report.pages import Pages

HEAD, TAIL = 200, 800
"""First and last lines of a log that a page shows; the record has all of them."""
FACTS = (
    "packages",
    "libraries",
    "thread_pools",
    "framework_threads",
    "sockets",
    "plain_buffers",
    "one_sided",
    "seeds",
    "hash_seed",
    "variables_bytes",
    "host",
    "workload",
)
"""Facts reported by a rank that a page shows besides the table of ranks."""
TIMED = {"train": ("step", "Time of each step"), "transfer": ("transfer", "Time of each round trip")}


@dataclass(frozen=True, slots=True)
class RankRow:
    """A rank's line of the table."""

    status: RankStatus
    exit: str
    path: str
    nbytes: str
    messages: str
    memory: str
    threads: str
    cores: str


@dataclass(frozen=True, slots=True)
class Log:
    """Numbered lines of a log. `rank`: the rank, or the name of another log, for its anchors."""

    rank: int | str
    name: str
    lines: list[tuple[int, str]]
    total: int
    left_out: int


@dataclass(frozen=True, slots=True)
class Spark:
    """Samples of a rank over time."""

    rank: int
    median: str
    largest: str
    count: int
    picture: Markup


def write_all(pages: Pages, suites: Sequence[SuiteData]) -> None:
    """Write the pages of all launches that have a record, on all cores."""
    launches = [(data, run) for data in suites for run in data.launches.values()]
    of_case: dict[str, list[Record]] = {}
    for _, run in launches:
        if run.record is not None:
            of_case.setdefault(run.record.case_id, []).append(run.record)

    def some(share: Sequence[tuple[SuiteData, Run]]) -> None:
        for data, run in share:
            _write(pages, data, run, of_case)

    in_parallel(some, launches, int(usable_cores()))


def _write(pages: Pages, data: SuiteData, run: Run, of_case: Mapping[str, Sequence[Record]]) -> None:
    """Write runs/<launch>.html and a copy of its run.json. `of_case`: records by the id of their case."""
    record, folder = run.record, run.folder
    assert record is not None and folder is not None, "a launch without a record has no page"
    title, sparks = _sparks(run)
    pages.write(
        f"runs/{record.launch}.html",
        "run.html.j2",
        record=record,
        command=shlex.join(record.command),
        ranks=[_rank_row(record, status) for status in record.ranks],
        interfaces=_interfaces(record),
        claims=list(dict.fromkeys(claim.id for claim in data.claims if run.launch in claim.runs)),
        metrics=[
            (METRICS[name], value, run.attained(name, value))
            for name in METRICS
            if (value := run.metric(name)) is not None
        ],
        words=_words(run),
        rates=rate_lines(record, run.samples, run.profile) if record.status == "ok" else [],
        spark_title=title,
        sparks=sparks,
        logs=logs(folder),
        passed=sum(check.passed for check in record.checks),
        wire=surroundings.wire(record),
        preflight=surroundings.preflight(record),
        clocks=surroundings.clocks(record),
        inputs=inputs.summary([record]),
        evidence=data.evidence_text(run),
        label=data.label([run]),
        case=_flat(record.case.model_dump(mode="json")),
        environment=_flat(record.environment | _facts(record)),
        unexplained=run.metric("unexplained_share"),
        nodes=nodes.nodes(record),
        node_head=nodes.HEAD,
        elsewhere=nodes.elsewhere(record, of_case[record.case_id]),
    )
    shutil.copyfile(folder / RUN, pages.folder / "runs" / f"{record.launch}.json")


def _words(run: Run) -> list[tuple[Metric, str]]:
    """Metrics for which the launch has words in place of a number: it diverged, or missed its target."""
    assert run.record is not None, "a launch without a record has no page"
    if run.record.status != "ok":
        return []
    found = [
        (metric, metric.instead(run.record, run.samples))
        for name, metric in METRICS.items()
        if metric.launch is not None and metric.instead is not None and run.metric(name) is None
    ]
    return [(metric, words) for metric, words in found if words is not None]


def logs(folder: Path) -> list[Log]:
    """The logs of all ranks in their order, then the launcher's."""
    paths = sorted(
        folder.glob("*.log"), key=lambda path: (not path.stem.startswith("rank-"), len(path.stem), path.stem)
    )
    return [_log(path) for path in paths]


def _log(path: Path) -> Log:
    text = path.read_bytes().decode(errors="replace").splitlines()
    numbered: Iterator[tuple[int, str]] = enumerate(text, 1)
    lines = (
        list(numbered)
        if len(text) <= HEAD + TAIL
        else [*islice(numbered, HEAD), *islice(numbered, len(text) - HEAD - TAIL, None)]
    )
    rank = path.stem.removeprefix("rank-")
    return Log(rank, path.name, lines, len(text), len(text) - len(lines))


def _rank_row(record: Record, status: RankStatus) -> RankRow:
    path, traffic = _transport_facts(record, "ranks", status.rank), _transport_facts(record, "traffic", status.rank)
    facts = status.facts
    return RankRow(
        status,
        _exit(status),
        str(path.get("path", "–")),
        nbytes(traffic.get("nbytes")),
        significant(traffic.get("messages")),
        significant(facts.get("peak_memory_mib")),
        str(facts.get("threads", "–")),
        ", ".join(str(core) for core in facts.get("affinity", [])) or "–",
    )


def _exit(status: RankStatus) -> str:
    if status.signal is not None:
        return f"signal {status.signal}"
    return "–" if status.exit_code is None else f"code {status.exit_code}"


def _transport_facts(record: Record, name: str, rank: int) -> dict[str, Any]:
    """One rank's facts of the record's transport part."""
    by_rank = record.transport.get(name) or []
    return (by_rank[rank] or {}) if rank < len(by_rank) else {}


def _interfaces(record: Record) -> list[dict[str, Any]]:
    before, after = record.transport.get("counters_before") or {}, record.transport.get("counters_after") or {}
    return [
        {"name": name, **{key: value - before.get(name, {}).get(key, 0) for key, value in counters.items()}}
        for name, counters in after.items()
    ]


def _facts(record: Record) -> dict[str, Any]:
    """Facts of rank 0, and those of other ranks where they differ."""
    facts: dict[str, Any] = {}
    for name in FACTS:
        values = [status.facts.get(name) for status in record.ranks if name in status.facts]
        if values:
            facts[name] = values[0]
            facts |= {f"{name}, rank {rank}": value for rank, value in enumerate(values) if value != values[0]}
    return facts


def _flat(values: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested values as lines: names joined by dots, lists by commas."""
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            pairs.append(
                (
                    prefix + name,
                    ", ".join(item if isinstance(item, str) else json.dumps(item) for item in value) or "none",
                )
            )
        else:
            pairs.append((prefix + name, "–" if value is None else str(value)))
    return pairs


def _sparks(run: Run) -> tuple[str, list[Spark]]:
    assert run.record is not None
    event, title = TIMED.get(run.record.case.program, (getattr(run.record.case, "operation", ""), "Time of each call"))
    rows = columns(run.record, run.samples)
    timed = rows.of(event)
    sparks = []
    for rank in np.unique(rows.rank[timed]).tolist():
        own = timed[rows.rank[timed] == rank]
        times: np.ndarray = (rows.end[own] - rows.start[own]) / 1e6
        median, largest = significant(float(np.median(times))), significant(float(times.max()))
        picture = sparkline(times, f"{title} of rank {rank} in ms: median {median}, largest {largest}")
        sparks.append(Spark(rank, median, largest, len(times), picture))
    return title, [spark for spark in sparks if spark.picture]
