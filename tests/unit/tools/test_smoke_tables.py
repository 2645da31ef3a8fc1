"""The README of every suite has a table of what the suite runs at size smoke, and the table is that of suite.yaml."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from scaleproof.spec.suite import Suite, list_suites, load_suite
from tools import smoke_tables
from tools.reference import REFERENCE
from tools.reference.one_run import FILE, Manifest, read_manifest

FOLDERS = list_suites(smoke_tables.ROOT / "suites")
STORED = [folder for folder in FOLDERS if (REFERENCE / f"{folder.name}.runs.csv").exists()]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_table_of_smoke_in_a_readme_is_that_of_its_suite(folder: Path) -> None:
    stored = (folder / "README.md").read_text()
    expected = smoke_tables.with_section(stored, smoke_tables.section(load_suite(folder)))
    assert stored == expected, "type `python -m tools.smoke_tables`"


def test_a_suite_that_runs_less_has_another_table(tmp_path: Path) -> None:
    text = (smoke_tables.ROOT / "suites" / "das2016" / "suite.yaml").read_text()
    full = _section(tmp_path / "full" / "das2016", text)
    transport, launches = "[shm, tcp, grpc, gloo, mpi, horovod, gloo_no_overlap]", "        launches: 6\n"
    assert transport in text
    assert _section(tmp_path / "mpi" / "das2016", text.replace(transport, transport.replace("mpi, ", ""))) != full
    vgg = "                - {workload: {name: vgg_a, image_side: 64, width: 0.25}, minibatch: 16}\n"
    assert vgg in text and _section(tmp_path / "network" / "das2016", text.replace(vgg, "")) != full
    assert _section(tmp_path / "fewer" / "das2016", text.replace(launches, "        launches: 3\n")) != full


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "30 launches; the stored reference run had the same number, in 4.2 minutes with noise floors and"),
        ({"pagerank": 12}, "30 launches; the stored reference run had 12 (12 of pagerank), in 4.2 minutes"),
        ({"pagerank": 0, "old": 30}, "the stored reference run had the same number (none of pagerank, 30 of old), in"),
    ],
    ids=["as planned", "fewer launches", "other experiments"],
)
def test_minutes_stand_beside_the_launches_that_took_them(
    change: dict[str, int], expected: str, tmp_path: Path
) -> None:
    suite = load_suite(smoke_tables.ROOT / "suites" / "vigna2007")
    store(tmp_path, suite, {"pagerank": 30, **change})
    assert expected in smoke_tables.section(suite, tmp_path)


def test_launches_that_could_not_run_are_told_from_those_that_took_the_minutes(tmp_path: Path) -> None:
    suite = load_suite(smoke_tables.ROOT / "suites" / "vigna2007")
    store(tmp_path, suite, {"pagerank": 30}, not_runnable=6)
    assert "had the same number, 6 of them not runnable there, in 4.2 minutes" in smoke_tables.section(suite, tmp_path)


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.name)
def test_a_readme_names_the_launches_of_the_stored_run_where_they_are_not_those_of_the_plan(folder: Path) -> None:
    table, suite = REFERENCE / f"{folder.name}.runs.csv", load_suite(folder)
    with table.open(newline="") as source:
        stored = len(list(csv.DictReader(source)))
    sizes = [experiment.size("smoke") for experiment in suite.experiments.values() if "smoke" in experiment.sizes]
    planned = sum(size.launches * size.campaigns * len(size.cases) for size in sizes)
    number = "the same number" if stored == planned else str(stored)
    said = f"{planned} launches; the stored reference run had {number}"
    text = (folder / "README.md").read_text()
    assert any(line.startswith((f"{said},", f"{said} (")) for line in text.splitlines())


def test_a_suite_that_the_stored_run_lacks_has_no_minutes(tmp_path: Path) -> None:
    suite = load_suite(smoke_tables.ROOT / "suites" / "vigna2007")
    assert "\n30 launches.\n" in smoke_tables.section(suite, tmp_path)


def test_a_readme_without_the_markers_is_told_which_lines_it_lacks() -> None:
    with pytest.raises(ValueError, match="end of smoke"):
        smoke_tables.with_section("# a suite\n", "")


def store(reference: Path, suite: Suite, launches: dict[str, int], not_runnable: int = 0) -> None:
    """A stored run of one suite that took 4.2 minutes, with so many launches of each experiment."""
    manifest = read_manifest(REFERENCE)
    assert isinstance(manifest, Manifest)
    changed = manifest.model_copy(update={"minutes": {suite.name: 4.2}})
    (reference / FILE).write_text(changed.model_dump_json())
    rows = [experiment for experiment, number in launches.items() for _ in range(number)]
    with (reference / f"{suite.name}.runs.csv").open("w", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(["experiment", "status"])
        for number, experiment in enumerate(rows):
            writer.writerow([experiment, "not_runnable" if number < not_runnable else "ok"])


def _section(folder: Path, text: str) -> str:
    folder.mkdir(parents=True)
    (folder / "suite.yaml").write_text(text)
    return smoke_tables.section(load_suite(folder))
