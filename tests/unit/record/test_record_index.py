"""The index of a results folder says what the records say, at any time; without it nothing is different but the time it
takes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.record import index as index_module
from scaleproof.record.index import Index
from scaleproof.record.rows import of_record
from scaleproof.record.segments import FOLDER
from scaleproof.record.store import Store
from scaleproof.record.table import collect
from scaleproof.record.values import Values
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
    for found in plain.records():
        assert indexed.samples(found).to_pylist() == plain.samples(found).to_pylist()
        assert indexed.samples(found).schema.equals(plain.samples(found).schema)
    counts = Index(tmp_path).samples.to_pandas().groupby("launch", observed=False).size()
    assert counts.to_dict() == {"aa": 6, "bb": 0, "cc": 4}


def test_emulated_time_is_taken_back_once(tmp_path: Path) -> None:
    slowed = case(dilation=4, shrink=2, fabric="netns")
    commit(tmp_path, record("aa", case=slowed, case_id=slowed.case_id))
    plain, indexed = Store(tmp_path), Store(tmp_path, index=Index(tmp_path))
    [found] = plain.records()
    assert indexed.samples(found).to_pylist() == plain.samples(found).to_pylist()


def test_what_is_new_is_read_and_what_is_known_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = index_module.read_form
    monkeypatch.setattr(index_module, "read_form", lambda folder: (read.append(folder.name), original(folder))[1])
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
    told: list[str] = []
    store = Store(tmp_path, told.append, Index(tmp_path))
    assert store.rows(case().case_id) == [] and list(store.records()) == []
    assert len(told) == 1 and str(folder) in told[0] and "\n" not in told[0]


def test_samples_that_are_not_those_of_the_record_are_refused_without_an_index_too(tmp_path: Path) -> None:
    one, other = commit(tmp_path, record("aa"), rows=3), commit(tmp_path, record("bb", plan_index=1), rows=4)
    shutil.copyfile(other / "samples.parquet", one / "samples.parquet")
    store = Store(tmp_path)
    assert [found.launch for found in store.records()] == ["bb"] and "SHA-256" in store.warnings[0]


@pytest.mark.parametrize("harm", ["gone", "truncated", "of another version", "cannot be written"])
def test_the_index_is_never_needed(tmp_path: Path, harm: str) -> None:
    commit(tmp_path, record("aa"))
    assert launches(tmp_path) == ["aa"]
    [piece] = (tmp_path / FOLDER).glob("launches-*/*")
    if harm == "gone":
        shutil.rmtree(tmp_path / FOLDER)
    elif harm == "truncated":
        for path in piece.iterdir():
            path.write_bytes(path.read_bytes()[:100])
    elif harm == "of another version":
        piece.parent.rename(tmp_path / FOLDER / "launches-0000000000000000")
    else:
        shutil.rmtree(tmp_path / FOLDER)
        (tmp_path / FOLDER).write_text("in the way")
    assert launches(tmp_path) == ["aa"]
    if harm != "cannot be written":
        assert len(list((tmp_path / FOLDER).glob("launches-*/*"))) == 1, "one piece of this version, and nothing else"


def test_many_small_pieces_become_one(tmp_path: Path) -> None:
    for number in range(index_module.MANY + 2):
        commit(tmp_path, record(f"a{number}", plan_index=number), rows=number)
        assert len(Index(tmp_path).entries) == number + 1
    assert len(list((tmp_path / FOLDER).glob("launches-*/*"))) < index_module.MANY
    counts = dict(zip(*(Index(tmp_path).launches[name].to_pylist() for name in ("launch", "samples")), strict=True))
    assert counts == {f"a{number}": 2 * number for number in range(index_module.MANY + 2)}
    steps = Index(tmp_path).samples.to_pandas().groupby("launch", observed=False)["step"].max()
    assert steps["a9"] == 8


def test_values_are_kept_until_the_record_or_the_code_changes(tmp_path: Path) -> None:
    asked: list[str] = []

    def count(found: Record, samples: pd.DataFrame) -> float:
        asked.append(found.launch)
        return float(len(samples))

    def table(version: str) -> list[float]:
        store = Store(tmp_path, index=Index(tmp_path))
        found: list[float] = collect([PlannedLaunch(case(), 0, 1, 0)], store, {"rows": count}, version=version)[
            "rows"
        ].to_pylist()
        return found

    commit(tmp_path, record("aa"))
    assert [table(VERSION), table(VERSION), asked] == [[6.0], [6.0], ["aa"]]
    assert table("s-fedcba9876543210") == [6.0] and asked == ["aa", "aa"]
    shutil.rmtree(tmp_path / "runs" / case().case_id / "aa")
    commit(tmp_path, record("aa"), rows=5)
    assert table("s-fedcba9876543210") == [10.0]


def test_values_without_an_index_are_computed_every_time(tmp_path: Path) -> None:
    commit(tmp_path, record("aa"))
    values = Values(Store(tmp_path), {"rows": lambda found, samples: float(len(samples))}, VERSION)
    assert values.of(case().case_id, "aa") == {"rows": 6.0}
    values.keep()
    assert not (tmp_path / FOLDER).exists()
