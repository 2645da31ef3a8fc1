"""Suite gpu_collectives' page: public logs, imported logs and predictions in one table and figures, and the headline of
predicted over logged speed."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from scaleproof.claims.judge import judge_suite
from scaleproof.record.store import Store
from scaleproof.report import gpu_logs
from scaleproof.report.data import SuiteData
from scaleproof.report.figures.kinds import Mark, Plot, Series, kinds
from scaleproof.report.figures.style import Look
from scaleproof.report.headlines.page import headlines
from scaleproof.report.sections import Section
from scaleproof.results.imported_logs import KeptCall, KeptLog, predicted_call
from scaleproof.spec.suite import load_suite

ROOT = Path(__file__).parents[3]
SUITE = load_suite("gpu_collectives", ROOT / "suites")
SIZES = (1 << 20, 1 << 28)


def log(machine: str, busbw: float | None = 100.0, gpus: int | None = 16, nodes: int = 2) -> KeptLog:
    calls = tuple(KeptCall(nbytes=size, seconds=1e-3, busbw=busbw) for size in SIZES)
    return KeptLog(tool="nccl-tests", collective="allreduce", gpus=gpus, nodes=nodes, calls=calls, machine=machine)


def section_of(*logs: KeptLog) -> Section:
    (section,) = gpu_logs.sections(SuiteData(SUITE, [], [], imported=logs))
    return section


def rows_of(section: Section, group: str) -> dict[str, dict[str, str]]:
    """Cells by column, by size."""
    (table,) = section.tables
    found = [[cell.text for cell in row.cells] for row in table.rows if row.group == group]
    return {cells[0]: dict(zip(table.columns, cells, strict=True)) for cells in found}


def test_an_imported_log_stands_in_the_table_and_figure_of_the_public_one() -> None:
    section = section_of(log("p5"))
    rows = rows_of(section, "p5, allreduce, 2 nodes")
    both, public = rows["256\u202fMiB"], rows["8\u202fGiB"]
    predicted = predicted_call("p5", "allreduce", 2, 1 << 28)
    assert predicted is not None and both["imported (GB/s) ↑"] == "100" and public["imported (GB/s) ↑"] == "–"
    assert float(both["predicted (GB/s) ↑"]) == pytest.approx(predicted.busbw, rel=5e-3)
    assert float(both["predicted / imported"]) == pytest.approx(predicted.busbw / 100, rel=5e-3)
    (panel,) = [panel for panel in section.panels if panel.group.startswith("p5:") and "2 nodes" in panel.title]
    assert panel.picture.count("<title>imported, p5.allreduce.n2: ") == len(SIZES)
    assert "<title>gpu.p5.allreduce.n16.256m.busbw: " in panel.picture


def test_a_log_of_another_machine_or_of_fewer_gpus_has_a_figure_of_its_own() -> None:
    section = section_of(log("mine"), log("p5", gpus=4, nodes=1))
    assert rows_of(section, "mine, allreduce, 2 nodes, 16 GPUs")["1\u202fMiB"]["predicted (GB/s) ↑"] == "–"
    few = predicted_call("p5", "allreduce", 1, 1 << 20, gpus=4)
    found = rows_of(section, "p5, allreduce, 1 node, 4 GPUs")["1\u202fMiB"]["predicted (GB/s) ↑"]
    assert few is not None and float(found) == pytest.approx(few.busbw, rel=5e-3)


def test_without_an_imported_log_the_page_says_how_to_bring_one() -> None:
    section = section_of()
    assert "scaleproof import nccl-tests FILE --machine NAME" in section.how
    assert not any("imported" in column for table in section.tables for column in table.columns)
    assert "scaleproof import" not in section_of(log("p5")).how


def test_a_time_is_shown_as_the_bandwidth_that_it_is() -> None:
    shown = rows_of(section_of(), "a100x8, allgather, 1 node")["64\u202fKiB"]["public log (GB/s) ↑"]
    assert float(shown) == pytest.approx(65536 / 36.34e-6 / 1e9 * 7 / 8, rel=5e-3), "the log prints 36.34 us"


def test_the_csv_has_every_value_with_its_source() -> None:
    rows = list(csv.DictReader(io.StringIO(section_of(log("p5")).csv)))
    assert {row["source"] for row in rows} == {"public log", "imported", "predicted"}
    published = {row["id"] for row in rows} - {""}
    assert len(published) == 83 and all(row["low_gbs"] for row in rows if row["source"] == "predicted")


def test_other_suites_have_no_such_section() -> None:
    other = SuiteData(load_suite("collectives", ROOT / "suites"), [], [], imported=(log("p5"),))
    assert gpu_logs.sections(other) == []


def test_the_headline_shows_every_row_in_front_of_what_is_accepted(tmp_path: Path) -> None:
    claims = judge_suite(SUITE, "smoke", Store(tmp_path))
    (headline,) = headlines(SuiteData(SUITE, claims, []))
    (panel,) = headline.section.panels
    rows = [claim for claim in claims if claim.published is not None and claim.kind in ("consistency", "context")]
    assert len(rows) == 83 == sum(f"{row.id}: " in panel.picture for row in rows)
    held = re.findall(r"<title>[^<]*: ([\d.]+) \([^<]*; reproduced</title>", panel.picture)
    assert held and all(0.5 <= float(ratio) <= 2 for ratio in held)
    assert "; not judged</title>" in panel.picture and "computed by a formula" in headline.section.how


def marked(value: float, x: float, accepted: tuple[float, float] | None) -> Mark:
    return Mark(x, value, None, None, None, accepted is None, f"mark {value}", "#x", accepted=accepted)


def test_bands_are_what_rules_accept_at_neighbouring_places() -> None:
    marks = (marked(1.1, 1024, (0.5, 2.0)), marked(1.3, 4096, (0.5, 2.0)), marked(0.9, 1 << 26, (0.6, 1.4)))
    free = (marked(1.0, 2048, None),)
    looks = [Look(name, number, "o", 0) for number, name in enumerate("ab")]

    def bands(*series: tuple[Mark, ...]) -> int:
        drawn = tuple(Series(look.name, look, marks) for look, marks in zip(looks, series, strict=False))
        return kinds()["agreement"].draw(Plot("label", drawn, "x", "y", True, 1.0)).count("fill: var(--grid)")

    assert bands(free) == 0
    assert bands(marks) - bands(free) == 2 == bands(marks, free)
