"""A few experiments of the reference run as text, enough to judge their claims again: per experiment the records as
JSON lines, the samples as CSV and the decision when to stop. A run measures every time anew, so that the files share
nothing with those of the run before; they are kept small by storing differences."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from scaleproof.core.record_schema import SAMPLES, Record
from scaleproof.record.machine import MachineProfile
from scaleproof.record.store import Store
from scaleproof.record.write import write_record
from scaleproof.spec.launch_kind import LaunchKind
from scaleproof.spec.suite import load_suite
from tools.reference import REFERENCE, ROOT, SIZE
from tools.reference.differences import difference, merged

EXPERIMENTS = (("das2016", "throughput"), ("awan2019", "nodes"))
"""Measured and emulated; their claims have each kind of verdict that the machine of the reference run can give."""
FOLDER = REFERENCE / "records"
LIKE = "like"
AFTER, TOOK = "after_ns", "took_ns"
RELATIVE = {"start_ns": AFTER, "end_ns": TOOK}
"""Columns of the stored table in place of those of the samples."""


def write(results: Path) -> None:
    """The chosen experiments of a results folder, with the noise floors of the machine that ran them."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    store, kinds = Store(results), dict[str, set[LaunchKind | None]]()
    for suite, experiment in EXPERIMENTS:
        records = list(_records(store, suite, experiment))
        for record in records:
            kinds.setdefault(record.machine, set()).add(record.kind)
        lines = _compact([record.model_dump(mode="json") for record in records])
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (FOLDER / f"{suite}.{experiment}.jsonl").write_text(text)
        parts = [store.samples(record).to_pandas() for record in records]
        samples = pd.concat(parts, keys=range(len(parts)), names=["launch"]).reset_index("launch")
        _relative(samples).to_csv(FOLDER / f"{suite}.{experiment}.csv", index=False)
        stop = f"{suite}.{experiment}.{SIZE}.json"
        shutil.copy(results / "stops" / stop, FOLDER / stop)
    for machine, needed in kinds.items():
        profile = MachineProfile.model_validate_json((results / "machines" / machine / "profile.json").read_bytes())
        floors = tuple(floor for floor in profile.floors if floor.kind in needed)
        kept = profile.model_copy(update={"floors": floors, "runs": ()})
        (FOLDER / f"{machine}.profile.json").write_text(kept.model_dump_json() + "\n")


def _records(store: Store, suite: str, experiment: str) -> Iterator[Record]:
    for case in load_suite(ROOT / "suites" / suite).experiment(experiment).size(SIZE).cases:
        yield from store.records(case.case_id)


def _compact(forms: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first record in full, then what differs from the first one of the same case; `like` is its number."""
    lines, firsts = [forms[0]], {forms[0]["case_id"]: 0}
    for number, form in enumerate(forms[1:], 1):
        like = firsts.get(form["case_id"], 0)
        firsts.setdefault(form["case_id"], number)
        lines.append({LIKE: like} | difference(forms[like], form))
    return lines


def _whole(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of such lines; a line without a number differs from the first record."""
    forms = lines[:1]
    for line in lines[1:]:
        forms.append(merged(forms[line.pop(LIKE, 0)], line))
    return forms


def _relative(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples whose times have few digits: after the start of the launch's sample before, and how long it took."""
    before = samples.groupby("launch")["start_ns"].shift(fill_value=0)
    times = {AFTER: samples["start_ns"] - before, TOOK: samples["end_ns"] - samples["start_ns"]}
    stored = samples.assign(warmup=samples["warmup"].astype(int), **times)
    return stored[["launch", *(RELATIVE.get(name, name) for name in SAMPLES.names)]]


def _absolute(stored: pd.DataFrame) -> pd.DataFrame:
    """The samples of a stored table; one of an earlier run has absolute times."""
    samples = stored.assign(warmup=stored["warmup"].astype(bool))
    if AFTER not in stored:
        return samples
    start = stored.groupby("launch")[AFTER].cumsum()
    return samples.assign(start_ns=start, end_ns=start + stored[TOOK])


def unpack(into: Path) -> None:
    """The stored experiments as a results folder."""
    for suite, experiment in EXPERIMENTS:
        lines = list(map(json.loads, (FOLDER / f"{suite}.{experiment}.jsonl").read_text().splitlines()))
        samples = _absolute(pd.read_csv(FOLDER / f"{suite}.{experiment}.csv"))
        for number, form in enumerate(_whole(lines)):
            record = Record.model_validate({**form, "artifacts": {}})
            mine = samples[samples["launch"] == number][SAMPLES.names]
            table = pa.Table.from_pandas(mine, preserve_index=False).cast(SAMPLES)
            write_record(into / "draft", into / "runs" / record.case_id / record.launch, record, table, [])
        stop = f"{suite}.{experiment}.{SIZE}.json"
        (into / "stops").mkdir(exist_ok=True)
        shutil.copy(FOLDER / stop, into / "stops" / stop)
    for path in FOLDER.glob("*.profile.json"):
        folder = into / "machines" / path.name.removesuffix(".profile.json")
        folder.mkdir(parents=True)
        shutil.copy(path, folder / "profile.json")
