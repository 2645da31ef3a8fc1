"""What a page shows first, and what it folds: sections by number of ranks, long lists of claims, labels of sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from scaleproof.report import messages, own
from scaleproof.report.build import build
from scaleproof.report.data import SuiteData, load
from scaleproof.report.figures.size_ticks import size_ticks
from scaleproof.report.figures.style import looks
from scaleproof.spec.suite import load_suite
from tests.unit.report.report_results import example, make
from tests.unit.report.test_headlines import FIGURES, write_files
from tests.unit.report.test_report_own import MODELS

RANKS = """
suite: ranks
title: Numbers of ranks
experiments:
  calls:
    summary: calls
    base: {program: collective, transport: tcp, collective: ring, sizes: [1 KiB, 64 KiB, 1 MiB],
      iterations: 2, warmup: 1}
    arms: {all_reduce: {operation: all_reduce}}
    sizes: {smoke: {launches: 2, matrix: [{arms: [all_reduce], sweep: {ranks: [16, 4, 2]}}]}}
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> SuiteData:
    root = tmp_path_factory.mktemp("ranks")
    folder = root / "suites" / "ranks"
    folder.mkdir(parents=True)
    (folder / "suite.yaml").write_text(RANKS)
    (folder / "models.py").write_text(MODELS.replace('"transfer"', '"collective"'))
    suite = load_suite(str(folder))
    make(root / "results", suite, "smoke")
    return load(root / "results", "smoke", [suite])[0]


def test_sections_begin_with_few_ranks(data: SuiteData) -> None:
    made = messages.sections(data.completed("collective"), "collective", looks({"all_reduce": "tcp"}))
    assert [section.id.rpartition("-")[2] for section in made] == ["2", "4", "16"]


def test_numbers_of_ranks_are_never_taken_together(data: SuiteData) -> None:
    (section,) = own.sections(data, looks({"all_reduce": "tcp"}))
    assert [panel.title for panel in section.panels] == ["calls, 2 ranks", "calls, 4 ranks", "calls, 16 ranks"]
    assert len(section.tables) == 3


def test_a_long_list_of_claims_is_folded_and_counted(tmp_path: Path) -> None:
    results, suite = example(tmp_path)
    write_files(suite.folder)
    many = "[example.claim0, " + ", ".join(["example.recalled"] * 6) + "]"
    (suite.folder / "figures.yaml").write_text(FIGURES.replace("[example.claim0, example.recalled]", many))
    build(results, tmp_path / "reports", "smoke", [suite])
    page = (tmp_path / "reports" / "example.html").read_text()
    assert "<summary>7 claims: 6 no verdict yet, 1 reproduced</summary>" in page
    assert page.count('<details class="judged">') == 1 and '<p class="judged">Claims:' in page


def test_labels_of_sizes_do_not_hide_each_other() -> None:
    axes = Figure().add_subplot()
    axes.set_xscale("log")
    size_ticks(axes, [1 << power for power in (10, 26, 27, 28, 30)], 5)
    assert list(axes.get_xticks()) == [1 << 10, 1 << 26, 1 << 30]
    size_ticks(axes, [1 << 20], 5)
    assert list(axes.get_xticks()) == [1 << 20]
