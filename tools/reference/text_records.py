"""A few experiments of the reference run as text, enough to judge their claims again: per experiment the records as
JSON lines (what differs from the first one), the samples as CSV and the decision when to stop."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

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


def write(results: Path) -> None:
    """The chosen experiments of a results folder, with the noise floors of the machine that ran them."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    store, kinds = Store(results), dict[str, set[LaunchKind | None]]()
    for suite, experiment in EXPERIMENTS:
        records = list(_records(store, suite, experiment))
        for record in records:
            kinds.setdefault(record.machine, set()).add(record.kind)
        forms = [record.model_dump(mode="json") for record in records]
        lines = [forms[0], *(difference(forms[0], form) for form in forms[1:])]
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (FOLDER / f"{suite}.{experiment}.jsonl").write_text(text)
        parts = [store.samples(record).to_pandas() for record in records]
        samples = pd.concat(parts, keys=range(len(parts)), names=["launch"]).reset_index("launch")
        samples["warmup"] = samples["warmup"].astype(int)
        samples.to_csv(FOLDER / f"{suite}.{experiment}.csv", index=False)
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


def unpack(into: Path) -> None:
    """The stored experiments as a results folder."""
    for suite, experiment in EXPERIMENTS:
        first, *others = map(json.loads, (FOLDER / f"{suite}.{experiment}.jsonl").read_text().splitlines())
        samples = pd.read_csv(FOLDER / f"{suite}.{experiment}.csv")
        samples["warmup"] = samples["warmup"].astype(bool)
        for number, form in enumerate([first, *(merged(first, other) for other in others)]):
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
