"""Which folders count as records, and how they are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scaleproof.core.record_schema import SAMPLES, Record
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError
from tests.unit.records import case, commit, failure, record


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    commit(tmp_path, record())
    store = Store(tmp_path)
    [read] = store.records()
    assert read.model_copy(update={"artifacts": {}}) == record()
    samples = store.samples(read)
    assert samples.schema.equals(SAMPLES)
    assert samples.to_pandas()["step"].tolist() == [0, 1, 2, 0, 1, 2]
    assert (store.folder(read) / "rank-0.log").read_text() == "log"
    assert not list(store.staging.iterdir())


def test_a_launch_is_finished_when_case_index_machine_and_code_agree(tmp_path: Path) -> None:
    commit(tmp_path, record("aa", status="failed", failure=failure()))
    commit(tmp_path, record("bb", plan_index=1))
    store = Store(tmp_path)

    def finished(plan_index: int, digest: str = "d", machine: str = "m") -> Record | None:
        return store.find(case().case_id, plan_index, machine, lambda record: record.code.digest == digest)

    assert finished(0) is None
    launch = finished(1)
    assert launch is not None and launch.launch == "bb"
    assert finished(1, digest="other") is None
    assert finished(1, machine="other") is None


@pytest.mark.parametrize("damage", ["truncated", "schema", "field", "samples", "no samples", "moved", "empty"])
def test_a_damaged_record_is_never_a_result_and_stays_where_it_is(tmp_path: Path, damage: str) -> None:
    folder = commit(tmp_path, record())
    run, text = folder / "run.json", (folder / "run.json").read_text()
    if damage == "truncated":
        run.write_text(text[: len(text) // 2])
    elif damage == "schema":
        run.write_text(json.dumps(json.loads(text) | {"schema_version": 1}))
    elif damage == "field":
        run.write_text(json.dumps(json.loads(text) | {"surprise": 1}))
    elif damage == "samples":
        samples = folder / "samples.parquet"
        samples.write_bytes(samples.read_bytes()[:-5])
    elif damage == "no samples":
        (folder / "samples.parquet").unlink()
    elif damage == "moved":
        folder = folder.rename(folder.with_name("bb"))
    else:
        run.write_text("")
    warnings: list[str] = []
    store = Store(tmp_path, warnings.append)
    assert list(store.records()) == [] and store.find(case().case_id, 0, "m", bool) is None
    assert len(warnings) == 1 and str(folder) in warnings[0] and "\n" not in warnings[0]
    assert folder.exists()


def test_a_launch_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    commit(tmp_path, record("aa11"))
    commit(tmp_path, record("aa22", plan_index=1))
    store = Store(tmp_path)
    assert store.load("aa2")[0].plan_index == 1
    for wrong in ("aa", "bb", "../aa11", "*"):
        with pytest.raises(SpecError):
            store.load(wrong)


def test_a_record_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scaleproof.record.write.pq.write_table", full)
    with pytest.raises(OSError, match="No space"):
        commit(tmp_path, record())
    assert not list(tmp_path.glob("runs/*/*")) and not list((tmp_path / "staging").iterdir())
