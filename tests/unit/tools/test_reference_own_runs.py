"""Files of results/reference that are made by commands of their own: one that was changed by hand is shown nowhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tools.reference import REFERENCE, one_run, own_runs, tables


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    for name in own_runs.MADE_BY:
        (tmp_path / name).write_text(name)
        own_runs.note(tmp_path / name, tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", own_runs.MADE_BY)
def test_an_edited_copy_and_a_missing_one_are_refused_with_the_command_that_makes_it(
    reference: Path, name: str
) -> None:
    own_runs.check(reference)
    (reference / name).write_text("edited")
    with pytest.raises(SystemExit, match=f"{name}: not as digests.json has it, so it was changed by hand; `.*` makes"):
        own_runs.check(reference)
    own_runs.check(reference, names=[other for other in own_runs.MADE_BY if other != name])
    (reference / name).unlink()
    with pytest.raises(SystemExit, match=f"{name}: missing; `"):
        own_runs.check(reference)


def test_tables_are_not_written_from_an_edited_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*own_runs.MADE_BY, own_runs.FILE):
        shutil.copyfile(REFERENCE / name, tmp_path / name)
    monkeypatch.setattr(tables, "REFERENCE", tmp_path)
    assert tables.pages()
    bench = json.loads((tmp_path / "bench.json").read_text())
    bench["targets"][0]["ratio"] *= 2
    (tmp_path / "bench.json").write_text(json.dumps(bench, indent=1) + "\n")
    with pytest.raises(SystemExit, match=r"bench.json: not as digests.json has it"):
        tables.pages()


def test_what_make_bench_wrote_is_kept_with_its_digests_and_a_part_of_it_is_not(
    reference: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = tmp_path_factory.mktemp("bench")
    (made / "bench.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"bench.md: missing; `make bench` writes it"):
        own_runs.keep_bench(made, reference)
    assert (reference / "bench.json").read_text() == "bench.json"
    (made / "bench.md").write_text("new")
    own_runs.keep_bench(made, reference)
    own_runs.check(reference)
    assert (reference / "bench.md").read_text() == "new"


def test_a_file_elsewhere_gets_no_digest(tmp_path: Path) -> None:
    (tmp_path / own_runs.NETNS).write_text("{}")
    own_runs.note(tmp_path / own_runs.NETNS)
    assert not (tmp_path / own_runs.FILE).exists()


def test_digests_that_cannot_be_read_are_one_line(reference: Path) -> None:
    (reference / own_runs.FILE).write_text("[")
    with pytest.raises(SystemExit, match=r"digests.json: no digests by file name"):
        own_runs.check(reference)


def test_every_stored_file_has_a_digest() -> None:
    here = {path.relative_to(REFERENCE).as_posix() for path in REFERENCE.rglob("*") if path.is_file()}
    assert here - set(one_run.digests(REFERENCE)) == {one_run.FILE, own_runs.FILE, *own_runs.MADE_BY}
