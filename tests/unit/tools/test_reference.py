"""The README's tables agree with the reference run; its stored part is small, and enough to judge again."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.judge import judge_suite
from scaleproof.record.store import Store
from scaleproof.spec.suite import list_suites, load_suite
from tools.reference import REFERENCE, ROOT, archive, tables, text_records, verdicts
from tools.reference.differences import difference, merged
from tools.reference.shares import TODAY

TODAY_BYTES, LATER_BYTES = 3_000_000, 200_000
"""What the suites of TODAY share, and what each later one has."""
TEXT = {".json", ".jsonl", ".csv", ".md"}


def test_readme_and_pages_show_the_tables_of_the_reference_run() -> None:
    for path, text in tables.pages().items():
        assert path.read_text() == text, f"{path.name}: type `python -m tools.reference readme`"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


def test_the_readme_names_every_experiment_of_every_suite() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    for folder in list_suites(ROOT / "suites"):
        row = next(line for line in lines if line.startswith(f"| [{folder.name}]"))
        named = re.findall(r"\w+", row.rsplit("|", 2)[1])
        assert [name for name in load_suite(folder).experiments if name not in named] == [], folder.name


def test_a_table_between_missing_markers_is_refused() -> None:
    with pytest.raises(SystemExit, match="0 times"):
        tables._between("no markers", "speed", "x")


def test_the_reference_is_text_and_small() -> None:
    files = [path for path in REFERENCE.rglob("*") if path.is_file()]
    assert {path.name for path in files if path.suffix not in TEXT} == set()
    later = {folder.name for folder in list_suites(ROOT / "suites")} - TODAY
    sizes = dict.fromkeys(["today", *later], 0)
    for path in files:
        suite = path.name.partition(".")[0]
        sizes[suite if suite in later else "today"] += path.stat().st_size
    assert sizes.pop("today") <= TODAY_BYTES
    assert {suite: size for suite, size in sizes.items() if size > LATER_BYTES} == {}


def test_the_repository_holds_no_archive() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [
        name for name in tracked.splitlines() if name.endswith((".xz", ".gz", ".zip", ".zst", ".tar", ".bz2"))
    ] == []


def test_the_reference_records_give_the_reference_verdicts_again(tmp_path: Path) -> None:
    text_records.unpack(tmp_path)
    stored = {(verdict.id, verdict.evidence): verdict for verdict in verdicts.read()}
    judged = set()
    for suite, experiment in text_records.EXPERIMENTS:
        for claim in judge_suite(load_suite(ROOT / "suites" / suite), "smoke", Store(tmp_path)):
            if claim.experiment != experiment:
                continue
            before = stored[claim.id, claim.evidence or ""]
            assert (claim.verdict or "", claim.n) == (before.verdict, before.launches), claim.id
            assert (claim.ours is None) == (before.ours is None), claim.id
            assert claim.ours is None or claim.ours == pytest.approx(before.ours, rel=1e-5), claim.id
            judged.add(claim.verdict)
    assert len(judged - {""}) >= 3, "records whose verdicts are all alike would show little"


def test_stored_records_are_those_that_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text_records.unpack(tmp_path / "before")
    monkeypatch.setattr(text_records, "FOLDER", tmp_path / "stored")
    text_records.write(tmp_path / "before")
    text_records.unpack(tmp_path / "after")
    before, after = (Store(tmp_path / folder) for folder in ("before", "after"))
    records = {record.launch: record for record in after.records()}
    assert records and records == {record.launch: record for record in before.records()}
    assert all(after.samples(record).equals(before.samples(record)) for record in records.values())
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "stored").iterdir()}
    rows = sum(after.samples(record).num_rows for record in records.values() if record.case.suite == "das2016")
    assert sizes["das2016.throughput.csv"] < 45 * rows, "times of few digits"


def test_targets_of_the_reference_run_are_judged_by_the_whole_interval_and_an_old_file_says_that_it_is_old() -> None:
    common = {"arm": "tcp", "against": "gloo", "nbytes": 1 << 20, "ranks": 2, "wanted": 1.2}
    ends = ((1.3, 1.3, 1.4), (1.3, 1.1, 1.4), (1.1, 1.0, 1.1), (1.3, None, None), (None, None, None))
    targets = [{**common, "ratio": ratio, "low": low, "high": high, "met": True} for ratio, low, high in ends]
    outcomes = [line.split("|")[-2].strip() for line in tables.ratios(targets).splitlines()[2:]]
    assert outcomes == ["met", "undecided", "missed", "undecided", "not measured"]
    machine = {"machine": {"congestion_control": "bbr"}}
    first, third, fourth = (tables.old({"schema_version": version} | machine, "") for version in (1, 3, 4))
    assert "older than the rules" in first and "of all peers bbr" in third and not fourth


def test_an_archive_holds_the_results_folder(tmp_path: Path) -> None:
    for part in ("runs", "machines", "staging"):
        (tmp_path / "results" / part).mkdir(parents=True)
        (tmp_path / "results" / part / "file").write_text(part)
    archive.write(tmp_path / "results", tmp_path / "new" / "reference.tar.xz")
    archive.unpack(tmp_path / "new" / "reference.tar.xz", tmp_path / "again")
    assert {path.read_text() for path in (tmp_path / "again").rglob("file")} == {"runs", "machines"}


def test_a_missing_archive_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such archive"):
        archive.unpack(tmp_path / "none.tar.xz", tmp_path)


@pytest.mark.parametrize(
    ("base", "other"),
    [
        ({"a": 1, "b": {"c": [1, {"d": 2}]}}, {"a": 1, "b": {"c": [1, {"d": 3}]}}),
        ({"a": 1}, {"b": 2}),
        ({"a": [1, 2]}, {"a": [1]}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": {"x": 1}}, {"a": None}),
        ({"a": None}, {"a": {"x": {"y": 1}}}),
        ({"a": []}, {"a": []}),
    ],
)
def test_a_difference_laid_over_its_base_gives_the_other(base: Any, other: Any) -> None:
    again = merged(base, json.loads(json.dumps(difference(base, other))))
    assert json.dumps(again, sort_keys=True) == json.dumps(other, sort_keys=True)
