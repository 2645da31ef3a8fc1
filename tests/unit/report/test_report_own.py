"""A suite's own metrics on its page: by arm, and by message size where they are per size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scaleproof.calibrate.attainable import Attainable
from scaleproof.report.data import load
from scaleproof.report.figures.style import looks
from scaleproof.report.groups import arm
from scaleproof.report.own import sections
from tests.unit.report.report_results import example

MODELS = """\
from scaleproof.claims.metrics import Metric


def calls(record, samples, nbytes):
    return float((samples["nbytes"] == nbytes).sum()) if record.case.program == "transfer" else None


METRICS = [Metric("calls", "1", "higher", size=calls)]
"""


def test_a_metric_at_few_sizes_has_a_column_per_size_and_a_row_per_arm(tmp_path: Path) -> None:
    results, suite = example(tmp_path)
    (suite.folder / "models.py").write_text(MODELS.replace('"transfer"', '"transfer" and nbytes'))
    data = load(results, "smoke", [suite])[0]
    made = sections(data, looks({arm(run): run.row["transport"] for run in data.runs}))
    assert [column.split(" (")[0].replace("\u202f", " ") for column in made[0].tables[0].columns[1:-1]] == [
        "calls at 1 KiB",
        "calls at 1 MiB",
    ]
    assert {row.cells[0].text for row in made[0].tables[0].rows} == {arm(run) for run in data.completed("transfer")}
    assert made[0].panels == []


def test_a_metric_at_many_sizes_is_drawn_over_them_with_a_row_per_size_and_a_column_per_arm(tmp_path: Path) -> None:
    results, suite = example(tmp_path)
    (suite.folder / "models.py").write_text(MODELS)
    data = load(results, "smoke", [suite])[0]
    made = sections(data, looks({arm(run): run.row["transport"] for run in data.runs}))
    assert [row.cells[0].text.replace("\u202f", " ") for row in made[0].tables[0].rows] == ["0 B", "1 KiB", "1 MiB"]
    assert {column.split(" (")[0] for column in made[0].tables[0].columns[1:]} == {
        arm(run) for run in data.completed("transfer")
    }
    assert [panel.title for panel in made[0].panels] == ["calls"]


CLOCKED = """\
from scaleproof.claims.metrics import Metric

METRICS = [
    Metric("counted", "1", "higher", size=lambda record, samples, nbytes: 1.0 if nbytes else None),
    Metric("clocked", "s", "lower", size=lambda record, samples, nbytes: 1.0 if nbytes else None),
]
"""


@pytest.mark.parametrize("timed", [True, False])
def test_times_of_launches_that_ran_beside_others_are_left_out(tmp_path: Path, timed: bool) -> None:
    results, suite = example(tmp_path)
    (suite.folder / "models.py").write_text(CLOCKED)
    beside = {name: replace(experiment, timed=timed) for name, experiment in suite.experiments.items()}
    data = load(results, "smoke", [replace(suite, experiments=beside)])[0]
    made = sections(data, looks({arm(run): run.row["transport"] for run in data.runs}))
    columns = [column for section in made for table in section.tables for column in table.columns[1:-1]]
    shown = {column.split(" at ")[0] for column in columns}
    assert made and shown == ({"counted", "clocked"} if timed else {"counted"})
    assert all(("their times are left out" in section.how) is not timed for section in made)


RATE = """\
from scaleproof.claims.metrics import Metric


def rate(record, samples, nbytes):
    return 6.15 if record.case.program == "transfer" and nbytes >= LEAST else None


METRICS = [Metric("rate", "GB/s", "higher", size=rate, moves_one_way=lambda case: True)]
"""


@pytest.mark.parametrize("least", [0, 1 << 20])
def test_a_rate_that_has_a_bound_stands_beside_what_the_machine_can_do(tmp_path: Path, least: int) -> None:
    """As a row of many sizes, and as a column of few."""
    results, suite = example(tmp_path)
    (suite.folder / "models.py").write_text(RATE.replace("LEAST", str(least)))
    data = load(results, "smoke", [suite])[0]
    made = sections(data, looks({arm(run): run.row["transport"] for run in data.runs}))
    cells = [cell for row in made[0].tables[0].rows for cell in row.cells]
    assert pytest.approx(0.5) in [cell.attained.share for cell in cells if isinstance(cell.attained, Attainable)]


def test_without_metrics_of_its_own_a_suite_has_no_such_section(tmp_path: Path) -> None:
    results, suite = example(tmp_path)
    data = load(results, "smoke", [suite])[0]
    assert sections(data, {}) == []
