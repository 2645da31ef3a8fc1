"""The index of a results folder always agrees with the records; without it only the time is different."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.record import index as index_module
from scaleproof.record import index_database
from scaleproof.record.index import Index
from scaleproof.record.index_database import FOLDER, LOCK_FILE
from scaleproof.record.metric_values import MetricValues
from scaleproof.record.rows import of_record
from scaleproof.record.store import Store
from scaleproof.record.table import collect
from scaleproof.spec.plan import PlannedLaunch
from tests.unit.records import case, commit, failure, record

VERSION = "s-0123456789abcdef"


def launches(results: Path) -> list[str]:
    return sorted(Index(results).launches["launch"].to_pylist())


def test_rows_and_samples_are_those_of_the_records(tmp_path: Path) -> None:
    commit(tmp_path, record("aa"), rows=3)
    commit(tmp_path, record("bb", plan_index=1, status="failed", failure=failure()), rows=0)
    commit(tmp_path, record("cc", plan_index=2), rows=2)
    plain, indexed = Store(tmp_path), Store(tmp_path, index=Index(tmp_path))
    assert list(indexed.records()) == list(plain.records())
    assert [{name: row[name] for name in of_record(record())} for row in indexed.rows(case().case_id)] == plain.rows(
        case().case_id
    )
    for launch in plain.records():
        assert indexed.samples(launch).to_pylist() == plain.samples(launch).to_pylist()
        assert indexed.samples(launch).schema.equals(plain.samples(launch).schema)
    assert Index(tmp_path).samples.to_pandas().groupby("launch").size().to_dict() == {"aa": 6, "cc": 4}
    index = Index(tmp_path).launches
    assert dict(zip(index["launch"].to_pylist(), index["samples"].to_pylist(), strict=True)) == {
        "aa": 6,
        "bb": 0,
        "cc": 4,
    }


def test_emulated_time_is_taken_back_once(tmp_path: Path) -> None:
    slowed = case(dilation=4, shrink=2, fabric="netns")
    commit(tmp_path, record("aa", case=slowed, case_id=slowed.case_id))
    plain, indexed = Store(tmp_path), Store(tmp_path, index=Index(tmp_path))
    [launch] = plain.records()
    assert indexed.samples(launch).to_pylist() == plain.samples(launch).to_pylist()


def test_only_new_records_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = index_module.read_form

    def read_and_note(folder: Path) -> Any:
        read.append(folder.name)
        return original(folder)

    monkeypatch.setattr(index_module, "read_form", read_and_note)
    commit(tmp_path, record("aa"))
    assert launches(tmp_path) == ["aa"] and launches(tmp_path) == ["aa"] and read == ["aa"]
    commit(tmp_path, record("bb", plan_index=1))
    assert launches(tmp_path) == ["aa", "bb"] and read == ["aa", "bb"]
    shutil.rmtree(tmp_path / "runs" / case().case_id / "aa")
    assert launches(tmp_path) == ["bb"] and read == ["aa", "bb"]


@pytest.mark.parametrize("damage", ["edited", "truncated", "samples edited", "samples gone", "same size and time"])
def test_a_record_that_changed_after_it_was_read_is_noticed_and_is_no_result(tmp_path: Path, damage: str) -> None:
    folder = commit(tmp_path, record("aa"))
    assert launches(tmp_path) == ["aa"]
    run, samples = folder / "run.json", folder / "samples.parquet"
    text, before = run.read_text(), run.stat()
    if damage == "edited":
        run.write_text(json.dumps(json.loads(text) | {"surprise": 1}))
    elif damage == "truncated":
        run.write_text(text[:-40])
    elif damage == "samples edited":
        content = bytearray(samples.read_bytes())
        content[len(content) // 2] ^= 1
        samples.write_bytes(bytes(content))
    elif damage == "samples gone":
        samples.unlink()
    else:
        run.write_text(text.replace('"status": "ok"', '"status": "OK"'))
        os.utime(run, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (run.stat().st_size, run.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    warnings: list[str] = []
    store = Store(tmp_path, warnings.append, Index(tmp_path))
    assert store.rows(case().case_id) == [] and list(store.records()) == []
    assert len(warnings) == 1 and str(folder) in warnings[0] and "\n" not in warnings[0]


def test_samples_that_are_not_those_of_the_record_are_refused_without_an_index_too(tmp_path: Path) -> None:
    first, second = commit(tmp_path, record("aa"), rows=3), commit(tmp_path, record("bb", plan_index=1), rows=4)
    shutil.copyfile(second / "samples.parquet", first / "samples.parquet")
    store = Store(tmp_path)
    assert [launch.launch for launch in store.records()] == ["bb"] and "SHA-256" in store.warnings[0]


def files(results: Path) -> list[str]:
    return sorted(path.name for path in (results / FOLDER).iterdir() if path.name != LOCK_FILE)


@pytest.mark.parametrize("harm", ["gone", "truncated", "damaged inside", "of another version", "cannot be written"])
def test_a_missing_or_damaged_index_changes_no_result(tmp_path: Path, harm: str) -> None:
    commit(tmp_path, record("aa"))
    assert launches(tmp_path) == ["aa"]
    [name] = files(tmp_path)
    path = tmp_path / FOLDER / name
    if harm == "gone":
        shutil.rmtree(tmp_path / FOLDER)
    elif harm == "truncated":
        path.write_bytes(path.read_bytes()[:100])
    elif harm == "damaged inside":
        content = path.read_bytes()
        path.write_bytes(content[: 1 << 14] + bytes(len(content) - (1 << 14)))
    elif harm == "of another version":
        path.rename(path.with_name("0000000000000000.duckdb"))
    else:
        shutil.rmtree(tmp_path / FOLDER)
        (tmp_path / FOLDER).write_text("in the way")
    assert launches(tmp_path) == ["aa"]
    if harm != "cannot be written":
        assert files(tmp_path) == [name], "one file of this version, and nothing else"


def test_a_results_folder_without_records_gets_no_index(tmp_path: Path) -> None:
    results = tmp_path / "results"
    index = Index(results)
    assert len(index.launches) == len(index.samples) == 0 and index.problems == {} and not results.exists()


def test_launches_that_came_one_by_one_have_their_own_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "WINDOW_ROWS", 8)
    monkeypatch.setattr(index_module, "WINDOWS", 2)
    for number in range(10):
        commit(tmp_path, record(f"a{number}", plan_index=number), rows=number)
        assert len(Index(tmp_path).stamps) == number + 1
    shutil.rmtree(tmp_path / "runs" / case().case_id / "a4")
    plain, indexed = Store(tmp_path), Store(tmp_path, index=Index(tmp_path))
    for launch in [*plain.records(), *plain.records()]:
        assert indexed.samples(launch).to_pylist() == plain.samples(launch).to_pylist()
        assert indexed.frame(launch).to_dict("records") == plain.frame(launch).to_dict("records")
    counts = dict(zip(*(Index(tmp_path).launches[name].to_pylist() for name in ("launch", "samples")), strict=True))
    assert counts == {f"a{number}": 2 * number for number in range(10) if number != 4}


def test_launches_that_were_written_one_after_the_other_lie_together(tmp_path: Path) -> None:
    for name in ("cc", "aa", "bb"):
        commit(tmp_path, record(name))
    index = Index(tmp_path)
    assert len(index.stamps) == 3
    folders = index.database.table("SELECT folder FROM launches ORDER BY number")["folder"].to_pylist()
    assert [folder.split("/")[1] for folder in folders] == ["cc", "aa", "bb"]


def test_a_record_that_is_removed_while_the_index_is_in_use_is_not_mixed_up(tmp_path: Path) -> None:
    for number in range(3):
        commit(tmp_path, record(f"a{number}", plan_index=number), rows=number + 1)
    first, records = Store(tmp_path, index=Index(tmp_path)), list(Store(tmp_path).records())
    assert len(first.rows(case().case_id)) == 3
    shutil.rmtree(tmp_path / "runs" / case().case_id / "a0")
    assert launches(tmp_path) == ["a1", "a2"]
    assert [len(first.samples(launch)) for launch in records[1:]] == [4, 6]
    with pytest.raises(FileNotFoundError):
        first.samples(records[0])


def test_processes_that_read_at_the_same_time_write_each_launch_once(tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(6)]
    for number, name in enumerate(names):
        commit(tmp_path, record(name, plan_index=number))
    readers = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"from pathlib import Path; from scaleproof.record.index import Index; "
                f"print(*Index(Path({str(tmp_path)!r})).launches['launch'].to_pylist())",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert [reader.communicate()[0].split() for reader in readers] == [names] * 3
    assert launches(tmp_path) == names and len(Index(tmp_path).samples) == 6 * 6


def test_a_process_that_holds_the_index_does_not_stop_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tmp_path, record("aa"))
    assert launches(tmp_path) == ["aa"]
    commit(tmp_path, record("bb", plan_index=1))
    monkeypatch.setattr(index_database, "LOCK_WAIT_S", 0.0)
    with (tmp_path / FOLDER / LOCK_FILE).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert launches(tmp_path) == ["aa", "bb"]
    assert launches(tmp_path) == ["aa", "bb"]


def test_values_are_kept_until_the_record_or_the_code_changes(tmp_path: Path) -> None:
    counted: list[str] = []

    def count(launch: Record, samples: pd.DataFrame) -> float:
        counted.append(launch.launch)
        return float(len(samples))

    def table(version: str) -> list[float]:
        store = Store(tmp_path, index=Index(tmp_path))
        values: list[float] = collect([PlannedLaunch(case(), 0, 1, 0)], store, {"rows": count}, version=version)[
            "rows"
        ].to_pylist()
        return values

    commit(tmp_path, record("aa"))
    assert [table(VERSION), table(VERSION), counted] == [[6.0], [6.0], ["aa"]]
    assert table("s-fedcba9876543210") == [6.0] and counted == ["aa", "aa"]
    shutil.rmtree(tmp_path / "runs" / case().case_id / "aa")
    commit(tmp_path, record("aa"), rows=5)
    assert table("s-fedcba9876543210") == [10.0]


def test_values_without_an_index_are_computed_every_time(tmp_path: Path) -> None:
    commit(tmp_path, record("aa"))
    values = MetricValues(Store(tmp_path), {"rows": lambda launch, samples: float(len(samples))}, VERSION)
    assert values.of(case().case_id, "aa") == {"rows": 6.0}
    values.keep()
    assert not (tmp_path / FOLDER).exists()
