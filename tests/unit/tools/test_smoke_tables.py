"""The README of every suite has a table of what the suite runs at size smoke, and the table is that of suite.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.spec.suite import list_suites, load_suite
from tools import smoke_tables

FOLDERS = list_suites(smoke_tables.ROOT / "suites")


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


def test_a_readme_without_the_markers_is_told_which_lines_it_lacks() -> None:
    with pytest.raises(ValueError, match="end of smoke"):
        smoke_tables.with_section("# a suite\n", "")


def _section(folder: Path, text: str) -> str:
    folder.mkdir(parents=True)
    (folder / "suite.yaml").write_text(text)
    return smoke_tables.section(load_suite(folder))
