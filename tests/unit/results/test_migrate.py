"""`scaleproof results migrate`: records as version 0.1 wrote them, in today's form."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from scaleproof.cli import main
from scaleproof.commands.common import open_store
from scaleproof.core.record_schema import Code
from scaleproof.record.index import Index
from scaleproof.record.stops import Stops, read_stops, write_stops
from scaleproof.record.store import Store
from scaleproof.results import migrate as module
from scaleproof.results.migrate import migrate
from scaleproof.spec.case import parse_case
from scaleproof.spec.programs import programs_digest
from tests.unit.records import commit, record

FLAT = {
    "suite": "s",
    "experiment": "e",
    "ranks": 2,
    "transport": "horovod",
    "collective": "native",
    "fabric": "host",
    "launcher": "local",
    "interface": "lo",
    "nodes": 1,
    "guest": "uml",
    "link_mbit": None,
    "link_delay_ms": 0.0,
    "cluster": None,
    "node_cores": None,
    "dilation": 1.0,
    "shrink": 1.0,
    "costs": None,
    "fusion_mib": 64.0,
    "region_mib": None,
    "threads_per_rank": 1,
    "tracing": "none",
    "handicap": 0.0,
}
"""A case's common fields as version 0.1 wrote them."""
SWEEP = FLAT | {
    "arm": "fused",
    "program": "collective",
    "operation": "all_reduce",
    "dtype": "float32",
    "sizes": [8],
    "iterations": 20,
    "warmup": 3,
    "budget_mib": None,
}
NESTED = {
    "suite": "s",
    "experiment": "e",
    "arm": "fused",
    "program": "collective",
    "ranks": 2,
    "transport": {"name": "horovod", "fusion_mib": 64.0},
    "sizes": [8],
}
"""The same case today."""
NEW_ID = parse_case(NESTED).case_id


def own(source: str) -> dict[str, Any]:
    return FLAT | {
        "arm": "own",
        "transport": "shm",
        "fusion_mib": None,
        "program": "own",
        "entry": "work",
        "source": source,
        "options": {"slept": 1},
        "sizes": [],
        "iterations": 20,
        "warmup": 3,
        "budget_mib": None,
    }


def earlier(results: Path, launch: str, case: dict[str, Any], **fields: Any) -> Path:
    """A record in the form of version 0.1; its case id is made up."""
    case_id = hashlib.sha256(json.dumps(case).encode()).hexdigest()[:16]
    folder = commit(results, record(launch))
    form = json.loads((folder / "run.json").read_text())
    command = ["scaleproof", "run", "s", "e", "--case", case_id]
    form |= {"schema_version": 2, "case": case, "case_id": case_id, "command": command, **fields}
    (folder / "run.json").write_text(json.dumps(form))
    target = results / "runs" / case_id / launch
    target.parent.mkdir(exist_ok=True)
    return folder.rename(target)


def content(folder: Path) -> dict[str, bytes]:
    """Every file but the lock."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two records of version 0.1, their stop and their derived files."""
    folder = tmp_path / "results"
    first = earlier(folder, "aa", SWEEP, code=Code(version="0.1.0", commit="c", dirty=False, digest="old").model_dump())
    earlier(folder, "bb", SWEEP, plan_index=1)
    cases = [{"case_id": first.parent.name, "arm": "fused", "repetitions": 2, "launches": 2, "decided": "fixed number"}]
    stops = {"suite": "s", "experiment": "e", "size": "ci", "machine": "m", "code": "old", "minimum": 2, "budget": 2}
    write_stops(folder, Stops.model_validate(stops | {"cases": [cases[0] | {"half_width_share": None}]}))
    for name in ("tables/t.parquet", "claims/s.ci.json", "index/x.duckdb", "machines/m/profile.json", "notes.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def test_options_are_nested_and_everything_stands_under_the_new_case_id(results: Path) -> None:
    before = content(results)
    migration = migrate(results, None, {})
    assert (migration.converted, migration.current, migration.skipped) == (2, 0, [])
    assert migration.backup == results.with_name("results.before-migration") and content(migration.backup) == before
    store = Store(results)
    first, second = store.records()
    assert store.warnings == []
    assert first.case == parse_case(NESTED) and first.case_id == NEW_ID == second.case_id
    assert first.command == ["scaleproof", "run", "s", "e", "--case", NEW_ID]
    assert (first.launch, first.code.digest, second.plan_index) == ("aa", "old", 1)
    assert len(store.samples(first)) == 6 and (store.folder(first) / "rank-0.log").read_text() == "log"
    stops = read_stops(results, "s", "e", "ci")
    assert stops is not None and stops.case(NEW_ID) is not None
    assert (results / "machines" / "m" / "profile.json").exists() and (results / "notes.txt").exists()
    assert not any((results / name).exists() for name in ("tables", "claims", "index"))


def test_a_folder_of_today_is_left_untouched(results: Path) -> None:
    migrate(results, None, {})
    backup = content(results.with_name("results.before-migration"))
    before, inode = content(results), results.stat().st_ino
    migration = migrate(results, None, {})
    assert (migration.converted, migration.current) == (0, 2)
    assert content(results) == before and results.stat().st_ino == inode
    assert {path.name for path in results.parent.iterdir()} == {"results", "results.before-migration"}
    assert content(results.with_name("results.before-migration")) == backup
    earlier(results, "ee", SWEEP, plan_index=2)
    with pytest.raises(ValueError, match="earlier migration"):
        migrate(results, None, {})


def test_records_of_today_stay_beside_converted_ones_also_in_a_new_folder(results: Path, tmp_path: Path) -> None:
    commit(results, record("cc"))
    before = content(results)
    migration = migrate(results, tmp_path / "new", {})
    assert (migration.converted, migration.current) == (2, 1) and content(results) == before
    assert {launch.launch for launch in Store(tmp_path / "new").records()} == {"aa", "bb", "cc"}
    with pytest.raises(ValueError, match="exists already"):
        migrate(results, tmp_path / "new", {})


def test_records_that_cannot_be_converted_are_kept_and_named(results: Path) -> None:
    unknown = earlier(results, "dd", SWEEP | {"transport": "from_elsewhere"}).relative_to(results)
    form = (results / unknown / "run.json").read_text()
    migration = migrate(results, None, {})
    [skipped] = migration.skipped
    assert migration.converted == 2 and skipped.folder == unknown and "from_elsewhere" in skipped.why
    assert (results / unknown / "run.json").read_text() == form


def test_programs_of_a_suite_count_as_those_of_today(results: Path, tmp_path: Path) -> None:
    programs = tmp_path / "suites" / "s" / "programs"
    programs.mkdir(parents=True)
    (programs / "work.py").write_text("import scaleproof\n")
    earlier(results, "e1", own("first"), started_at="2026-01-01T00:00:00")
    earlier(results, "e2", own("last"), started_at="2026-01-02T00:00:00")
    migration = migrate(results, None, {"s": programs.parent})
    [program] = migration.programs
    assert (program.earlier, program.today) == ("last", programs_digest(programs))
    sources = {form.launch: getattr(form.case, "source", "") for form in Store(results).records()}
    assert (sources["e1"], sources["e2"]) == ("first", program.today)


@pytest.mark.parametrize("at", ["_fill", "_replace", "between the renames"])
def test_an_interruption_loses_nothing(results: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    def interrupted(folder: Path, backup: Path, *_: object) -> None:
        if at == "between the renames":
            folder.rename(backup)
        raise KeyboardInterrupt

    before = content(results)
    with monkeypatch.context() as patched:
        patched.setattr(module, "_replace" if at != "_fill" else "write_form", interrupted)
        with pytest.raises(KeyboardInterrupt):
            migrate(results, None, {})
    backup = results.with_name("results.before-migration")
    assert content(backup if at == "between the renames" else results) == before
    assert migrate(results, None, {}).converted == (0 if at == "between the renames" else 2)
    assert [launch.case_id for launch in Store(results).records()] == [NEW_ID, NEW_ID]
    assert content(backup) == before


def test_records_of_version_0_1_are_refused_in_one_line_that_names_the_command(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, indexed = Store(results), Store(results, index=Index(results))
    assert list(plain.records()) == [] and indexed.rows(NEW_ID) == []
    assert plain.warnings == indexed.warnings == [
        f"{results}: records of version 0.1 are ignored; `scaleproof results migrate {results}` converts them"
    ]
    assert main(["results", "list", "--results", str(results)]) == 0
    assert capsys.readouterr().err == f"warning: {plain.warnings[0]}\n"
    open_store(results, many=True)  # which `run` and `judge` call
    assert capsys.readouterr().err == f"warning: {plain.warnings[0]}\n"


def test_the_command_says_what_it_did(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    earlier(results, "e1", own("first"))
    assert main(["results", "migrate", str(results), "--suites", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "3 records converted" in out and f"{results}.before-migration" in out
    assert "suite 's' is not here" in err
    assert main(["results", "migrate", str(results) + ".before-migration", "--to", str(tmp_path / "new")]) == 0
    assert main(["results", "migrate", str(tmp_path / "new")]) == 0
    assert "nothing to migrate" in capsys.readouterr().out
    assert main(["results", "migrate", str(tmp_path / "none")]) == 2
