"""Scaling at several levels of evidence: curves, comparisons between levels, and the paper's points."""

from __future__ import annotations

import csv
import re

import pytest

from scaleproof.calibrate.attainable import NoBound
from scaleproof.claims.claims_yaml import load_claims
from scaleproof.report import levels
from scaleproof.report.data import SuiteData, load
from scaleproof.report.estimates import Estimate, around
from scaleproof.report.figures.levels import LevelCurve, LevelPoint, Published
from scaleproof.report.figures.levels import levels as draw
from scaleproof.report.figures.style import looks
from scaleproof.report.groups import network, training
from scaleproof.report.levels_compared import between, errors_table, level, rate, signed
from scaleproof.report.scaling_values import base_runs, scaling_values
from scaleproof.report.sections import Section
from scaleproof.report.suite import sections
from tests.unit.report.report_levels import levels_example
from tests.unit.report.report_results import rate_cells

ARMS = looks({"tcp": "tcp", "grpc": "grpc"})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> SuiteData:
    results, suite = levels_example(tmp_path_factory.mktemp("levels"))
    (suite_data,) = load(results, "full", [suite])
    return suite_data


@pytest.fixture(scope="module")
def levels_section(data: SuiteData) -> Section:
    return next(section for section in sections(data) if section.id == "levels")


def test_the_section_is_there_only_when_levels_differ(data: SuiteData, levels_section: Section):
    measured = SuiteData(data.suite, data.claims, [run for run in data.runs if run.record and level(run) == "measured"])
    assert levels.sections(measured, looks({"tcp": "tcp", "grpc": "grpc", "alone": None})) == []
    assert levels_section.title == "Scaling, by level of evidence"


def test_no_rate_of_a_level_stands_alone(levels_section: Section):
    cells = rate_cells([levels_section])
    assert len(cells) > 20 and [cell for cell in cells if cell.attained is None] == []
    reasons = {cell.attained.why for cell in cells if isinstance(cell.attained, NoBound)}
    assert reasons == {
        "single_core_flop was not measured on machine madeup",
        "no core of this machine computed these samples",
        "a prediction: nothing ran",
    }


def test_a_speedup_is_counted_from_one_rank_of_the_same_level(data: SuiteData):
    runs = [
        run
        for run in data.completed("train")
        if training(run).workload == "cd_dnn" and training(run).experiment == "scaling"
    ]
    tcp = [run for run in runs if training(run).transport == "tcp" and level(run) == "simulated"]
    alone = base_runs(tcp[0], runs)
    assert {(training(run).ranks, level(run), training(run).arm) for run in alone} == {(1, "simulated", "alone")}
    by_ranks = {each.ranks: each for each in scaling_values(tcp, runs)}
    assert by_ranks[8].speedup is not None and by_ranks[8].speedup[0] == pytest.approx(
        by_ranks[8].throughput[0] / rate(alone).value, rel=0.1
    )


def test_a_prediction_is_its_first_repetition_and_the_others_are_draws(data: SuiteData):
    runs = [
        run for run in data.completed("train") if (training(run).experiment, level(run)) == ("scaling", "simulated")
    ]
    by_ranks = [
        [run for run in runs if training(run).transport == "tcp" and training(run).ranks == ranks]
        for ranks in (2, 4, 8)
    ]
    tcp = next(group for group in by_ranks if len(group) == 6)
    first = next(run for run in tcp if run.record and run.record.plan_index == 0)
    (scaling_value,) = scaling_values(tcp, runs)
    value, low, high = scaling_value.throughput
    assert value == first.metric("throughput") and low is not None and high is not None and low < value < high
    base = next(run for run in base_runs(first, runs) if run.record and run.record.plan_index == 0)
    ours, theirs = first.metric("throughput"), base.metric("throughput")
    assert (
        ours
        and theirs
        and scaling_value.speedup is not None
        and scaling_value.speedup[0] == pytest.approx(ours / theirs)
    )


def test_errors_have_their_sign_and_their_trend_over_ranks(data: SuiteData, levels_section: Section):
    table = next(table for table in levels_section.tables if table.caption.startswith("Trends"))
    texts = [[cell.text for cell in row.cells] for row in table.rows]
    assert [row[:3] for row in texts if row[2]] == [
        ["simulated / emulated", "tcp", "2, 4"],
        ["simulated / emulated", "tcp", "2, 4"],
    ], "other arms have one number of ranks that two levels have"
    runs = [run for run in data.completed("train") if training(run).experiment == "scaling"]
    at = {
        pair.ranks: pair.error
        for pair in between("", runs)
        if (pair.upper.arm, pair.lower.level, pair.upper.level) == ("tcp", "emulated", "simulated")
    }
    slopes = [row.cells[4] for row in table.rows if row.cells[3].text == ", ".join(signed(at[ranks]) for ranks in at)]
    assert [cell.text for cell in slopes] == [signed(at[4] - at[2])] and slopes[0].interval
    together = next(row for row in texts if row[1].endswith("arms"))
    assert together[1] == "2 arms"
    counted = next(table for table in levels_section.tables if table.caption.startswith("Errors between"))
    assert all(" of " in row.cells[4].text and row.cells[3].text[0] in "+−" for row in counted.rows)


def test_a_range_of_efficiency_is_one_point_with_an_interval_around_it(data: SuiteData):
    runs = [run for run in data.completed("train") if training(run).workload == "vgg_a"]
    at_8 = scaling_values([run for run in runs if training(run).ranks > 1], runs)[-1]
    assert at_8.ranks == 8 and len({training(run).compute_options.efficiency for run in at_8.runs}) == 2
    value, low, high = at_8.throughput
    assert low is not None and high is not None and low <= value <= high


def test_a_range_one_of_whose_points_has_no_interval_has_none():
    assert around([Estimate(1.0, 0.9, 1.1), Estimate(2.0, 1.8, 2.3), Estimate(3.0, None, None)]) == (2.0, None, None)
    assert around([Estimate(1.0, 0.9, 1.1), Estimate(2.0, 1.8, 2.3)]) == (1.5, 0.9, 2.3)
    assert around([Estimate(1.0, None, None)]) == (1.0, None, None)


def test_cases_are_compared_where_only_the_way_of_running_differs(data: SuiteData):
    runs = [run for run in data.completed("train") if training(run).experiment == "scaling"]
    pairs = between(network(runs[0]), runs)
    assert {(pair.upper[1], pair.lower[1], pair.ranks) for pair in pairs if pair.lower[1] == "measured"} == {
        (upper, "measured", ranks) for upper in ("emulated", "simulated") for ranks in (1, 2)
    }
    assert {pair.ranks for pair in pairs if (pair.upper[1], pair.lower[1]) == ("simulated", "emulated")} == {2, 4}, (
        "alone both have the same profile"
    )
    for pair in pairs:
        assert pair.error == pytest.approx(pair.upper[2][0] / pair.lower[2][0] - 1)
    assert [row.cells[0].text for row in errors_table(pairs).rows] == [
        "simulated / measured",
        "simulated / emulated",
        "emulated / measured",
    ]


def test_cases_of_which_each_has_one_number_of_ranks_are_compared_too(levels_section: Section):
    rows = [row for row in levels_section.tables[2].rows if "width 0.125" in row.group]
    assert [(row.cells[0].text, row.cells[2].text) for row in rows] == [
        ("simulated / emulated", "2"),
        ("simulated / emulated", "4"),
    ]
    assert not [panel for panel in levels_section.panels if "width 0.125" in str(panel.picture)], (
        "one point is no curve"
    )


def test_the_papers_points_stand_where_workload_and_minibatch_are_theirs(data: SuiteData):
    def ids(workload: str) -> list[str]:
        return [
            point.tooltip.split(":")[0]
            for point in levels.published(
                data,
                load_claims(data.suite),
                [run for run in data.completed("train") if training(run).workload == workload],
            )
        ]

    assert ids("cd_dnn") == ["levels.dnn"]
    assert ids("vgg_a") == ["levels.vgg"], "levels.other has another minibatch"
    recalled = levels.published(
        data, load_claims(data.suite), [run for run in data.completed("train") if training(run).workload == "vgg_a"]
    )[0]
    assert recalled.href == "levels.html#claim-levels.vgg"
    assert recalled.recalled and recalled.ranks == 64 and "memory high" in recalled.tooltip


def test_every_level_is_named_in_picture_table_and_csv(levels_section: Section):
    picture = str(levels_section.panels[0].picture)
    for word in ("measured", "emulated", "simulated"):
        assert f", {word}</text>" in picture
        assert any(
            row.cells[1].text == (word if word == "measured" else f"{word} (not validated here)")
            for row in levels_section.tables[3].rows
        )
    assert {row["evidence"] for row in csv.DictReader(levels_section.csv.splitlines())} == {
        "measured",
        "emulated",
        "simulated",
    }
    assert {"measured", "emulated", "simulated"} <= {name for _, name in levels_section.key}
    assert "the paper, recalled or derived: never judged" in {name for _, name in levels_section.key}, (
        "its points are recalled"
    )


def test_the_table_says_throughput_and_exposed_communication_each_in_its_place(
    levels_section: Section, data: SuiteData
):
    row = next(
        row
        for row in levels_section.tables[3].rows
        if [cell.text for cell in row.cells[:3]] == ["grpc", "emulated (not validated here)", "4"]
    )
    runs = [
        run
        for run in data.completed("train")
        if training(run).arm == "grpc" and training(run).ranks == 4 and level(run) == "emulated"
    ]
    assert float(row.cells[3].text.replace("\u202f", "")) == pytest.approx(rate(runs).value, rel=0.01)
    exposed = [value for run in runs if (value := run.metric("exposed_communication_s")) is not None]
    assert float(row.cells[6].text) == pytest.approx(sorted(exposed)[len(exposed) // 2] * 1e3, rel=0.1)


def test_simulated_launches_are_in_no_figure_of_measured_throughput(data: SuiteData):
    for section in sections(data):
        if section.id in ("throughput", "step"):
            assert not [run for run in section.runs if level(run) == "simulated"]


def test_what_was_measured_is_filled_and_what_was_not_is_hollow():
    def drawn(hollow: bool) -> str:
        points = [LevelPoint(ranks, float(ranks), None, None, f"{ranks} <b>", "runs/x.html") for ranks in (1, 2)]
        curve = LevelCurve("tcp", "emulated" if hollow else "measured", hollow, points)
        return draw("label", [curve], ARMS, [Published(4, 3.0, hollow, "paper", "x.html#claim-x")], "speed-up", "x")

    assert len(re.findall(r"<use [^>]*fill: var\(--page\)", drawn(True))) == 3, "two marks and a recalled star"
    assert not re.findall(r"<use [^>]*fill: var\(--page\)", drawn(False))
    assert "<title>1 &lt;b&gt;</title>" in drawn(False) and 'xlink:href="x.html#claim-x"' in drawn(False)
    assert set(re.findall(r"#[0-9a-fA-F]{6}\b", re.sub(r'(url\(|href=")#\w+', "", drawn(True)))) == set()


def test_the_pages_of_such_a_suite_are_the_same_each_time(data: SuiteData, levels_section: Section):
    again = next(section for section in sections(data) if section.id == "levels")
    assert (again.panels, again.csv) == (levels_section.panels, levels_section.csv)
