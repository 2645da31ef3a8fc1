"""The figures that a suite declares: they come first on its page and are drawn from verdicts and launches; each mistake
is a one-line error."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from scaleproof.claims.claims_file import ClaimResult
from scaleproof.claims.metrics import METRICS
from scaleproof.report.build import build
from scaleproof.report.data import load
from scaleproof.report.figures.kinds import Mark, Plot, Series, kinds
from scaleproof.report.figures.style import Look
from scaleproof.report.groups import training
from scaleproof.report.headlines.load import load_headlines
from scaleproof.report.headlines.page import headlines
from scaleproof.report.headlines.values import marks_of_claim
from scaleproof.report.levels_compared import between
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import Suite, list_suites, load_suite
from scaleproof.workloads.case_network import work_factor
from tests.unit.report.report_levels import levels_example
from tests.unit.report.report_results import claim, example

ROOT = Path(__file__).parents[3]
PUBLISHED = """
rows:
  - {id: example.claim0, paper: x, statement: It scales., metric: speedup, unit: x, direction: higher, x: {nodes: 4},
     value: 3.5, baseline: one, where: abstract, source: the paper, provenance: paper, gate: true}
  - {id: example.recalled, paper: x, statement: It scales., metric: speedup, unit: x, direction: higher, x: {nodes: 2},
     value: 1.9, baseline: one, where: null, source: memory, provenance: memory_low, gate: false}
"""
CLAIMS = """
- {id: example.claim0, experiment: throughput, metric: speedup, select: {arm: tcp, ranks: 4}, against: {arm: alone},
   rule: {name: within, tolerance: 0.2, neutral: 1}}
- {id: example.recalled, needs: more nodes}
"""
FIGURES = """
- id: headline-speedup
  kind: levels
  title: Speed-up over nodes
  caption: What the paper says, <and> ours.
  alt: A rising "curve"
  experiment: throughput
  metric: speedup
  x: {label: nodes, field: ranks, row: nodes}
  y: {label: speed-up, ideal: x}
  series:
    - name: tcp
      select: {arm: tcp}
      against: {arm: alone}
      published: [example.claim0, example.recalled]
    - name: never run
      select: {arm: tcp, ranks: 1024}
      against: {arm: alone}
  claims: [example.claim0, example.recalled]
- id: headline-verdicts
  kind: dots
  title: The claim
  caption: A value beside the paper's.
  alt: One row
  y: {label: speed-up, ideal: 1}
  series: [{name: speed-up, claim: example.claim0}]
  claims: [example.claim0]
- id: headline-nothing
  kind: scaling
  title: To come
  caption: Nothing yet.
  alt: Nothing
  experiment: throughput
  metric: throughput
  x: {label: nodes, field: ranks}
  y: {label: throughput}
  series: [{name: never run, select: {ranks: 1024}}]
  claims: [example.recalled]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Suite, str]:
    """Results, the suite with figures, and its page."""
    root = tmp_path_factory.mktemp("headlines")
    results, suite = example(root)
    write_files(suite.folder)
    page = build(results, root / "reports", "smoke", [suite]).with_name("example.html")
    return results, suite, page.read_text()


def write_files(folder: Path) -> None:
    (folder / "published.yaml").write_text(PUBLISHED)
    (folder / "claims.yaml").write_text(CLAIMS)
    (folder / "figures.yaml").write_text(FIGURES)


def test_a_page_begins_with_the_declared_figures_in_their_order(made: tuple[Path, Suite, str]) -> None:
    ids = re.findall(r'<section id="([^"]+)"', made[2])
    assert ids[:3] == ["headline-speedup", "headline-verdicts", "headline-nothing"]
    assert len(ids) > 3, "the other figures follow"


def test_a_figure_has_caption_alternative_text_and_links_to_its_claims(made: tuple[Path, Suite, str]) -> None:
    section = made[2].split('<section id="headline-speedup"')[1].split("</section>")[0]
    assert "What the paper says, &lt;and&gt; ours." in section
    assert 'aria-label="A rising &quot;curve&quot;"' in section
    assert '<a href="#claim-example.claim0">example.claim0</a>' in section


def test_points_of_the_paper_say_whether_they_are_judged(made: tuple[Path, Suite, str]) -> None:
    figure = headlines(load(made[0], "smoke", [made[1]])[0])[0]
    assert [line.split(",")[4:6] for line in figure.section.csv.splitlines() if "published" in line] == [
        ["4", "3.5"],
        ["2", "1.9"],
    ]
    section = made[2].split('<section id="headline-speedup"')[1].split("</section>")[0]
    assert "example.recalled: 1.90; not judged: recalled" in section
    assert "the paper, recalled or derived: never judged" in section


@pytest.mark.parametrize(("nodes", "drawn"), [([2, 4], True), (4, False)])
def test_published_rows_stand_beside_cases_that_they_hold_for_only(tmp_path: Path, nodes: object, drawn: bool) -> None:
    results, suite = example(tmp_path)
    write_files(suite.folder)
    figures = yaml.safe_load(FIGURES)[:1]
    figures[0]["published_at"] = {"ranks": nodes}
    (suite.folder / "figures.yaml").write_text(yaml.safe_dump(figures))
    figure = headlines(load(results, "smoke", [suite])[0])[0]
    assert (",published," in figure.section.csv) == drawn
    assert ("not drawn: they hold for ranks 4, and launches here have ranks 2." in figure.caption) != drawn


def test_ours_have_intervals_and_their_level_of_evidence(made: tuple[Path, Suite, str]) -> None:
    figure = headlines(load(made[0], "smoke", [made[1]])[0])[0]
    ours = [line.split(",") for line in figure.section.csv.splitlines() if ",ours," in line]
    assert [row[4] for row in ours] == ["2", "4"] and {row[3] for row in ours} == {"measured"}
    assert all(float(row[6]) <= float(row[5]) <= float(row[7]) for row in ours if row[6])
    assert any(row[6] for row in ours), "six launches a side give an interval"


def test_values_of_a_claim_are_those_of_its_verdict(made: tuple[Path, Suite, str]) -> None:
    verdict: ClaimResult = claim("reproduced", 0, ())
    figure = headlines(load(made[0], "smoke", [made[1]])[0])[1]
    assert verdict.interval is not None
    row = next(line.split(",") for line in figure.section.csv.splitlines() if ",ours," in line)
    assert [float(cell) for cell in row[5:8]] == [verdict.ours, verdict.interval.low, verdict.interval.high]


def test_what_was_computed_is_not_drawn_as_measured(made: tuple[Path, Suite, str]) -> None:
    data = load(made[0], "smoke", [made[1]])[0]
    arithmetic = [each.model_copy(update={"evidence": None}) for each in data.claims]
    section = headlines(replace(data, claims=arithmetic))[1].section
    assert [entry.name for entry in section.key] == ["computed by a formula or a model", "the paper"]
    row = next(line.split(",") for line in section.csv.splitlines() if ",ours," in line)
    assert row[3] == "" and "nothing of it was run" in section.how
    declared, predicted = load_headlines(made[1]), replace(METRICS["speedup"], predicts=True)
    assert declared is not None
    figure = declared.figures[1]
    (mark,) = marks_of_claim(figure, figure.series[0], predicted, data)
    assert mark.evidence is None and mark.hollow


def test_a_reduced_network_is_counted_by_what_the_metric_computes(tmp_path: Path) -> None:
    results, suite = example(tmp_path)
    write_files(suite.folder)
    figures = yaml.safe_load(FIGURES)[:1]
    alone = {"name": "alone", "select": {"arm": "alone"}, "published": ["example.claim0"]}
    for metric in ("throughput", "forward_throughput"):
        figures[0] |= {"metric": metric, "series": [alone]}
        (suite.folder / "figures.yaml").write_text(yaml.safe_dump(figures))
        data = load(results, "smoke", [suite])[0]
        figure = headlines(data)[0]
        case = next(run.record.case for run in data.completed("train") if run.record and run.record.case.ranks == 1)
        assert isinstance(case, TrainCase)
        trained, forward = (f"{work_factor(case, forward_alone):.3g}" for forward_alone in (False, True))
        factor = forward if metric == "forward_throughput" else trained
        assert trained != forward and f"takes {factor} times the work per sample" in figure.caption
        rows = [line.split(",") for line in figure.section.csv.splitlines()]
        assert rows[0][8] == "work_factor"
        assert {(row[1], row[8]) for row in rows[1:]} == {("ours", factor), ("published", "")}


@pytest.mark.parametrize("kind", ["levels", "scaling", "dots"])
def test_a_rate_of_a_figure_says_what_share_of_its_bound_it_is(tmp_path: Path, kind: str) -> None:
    results, suite = example(tmp_path)
    write_files(suite.folder)
    figure = yaml.safe_load(FIGURES)[0]
    figure |= {"kind": kind, "metric": "throughput", "series": [{"name": "tcp", "select": {"arm": "tcp"}}]}
    if kinds()[kind].x is None:
        drop_x(figure)
    (suite.folder / "figures.yaml").write_text(yaml.safe_dump([figure]))
    (panel,) = headlines(load(results, "smoke", [suite])[0])[0].section.panels
    assert re.search(r"tcp[^<]*: [\d.]+[^<]*, [\d.]+\s% of attainable", panel.picture)


def test_a_cell_shows_the_smallest_value_and_how_far_the_next_one_is(tmp_path: Path) -> None:
    results, suite = example(tmp_path)
    write_files(suite.folder)
    figure = yaml.safe_load(FIGURES)[0]
    series = [{"name": name, "select": {"arm": name}} for name in ("tcp", "alone")]
    figure |= {"kind": "fastest", "metric": "throughput", "rows": "ranks", "series": series}
    (suite.folder / "figures.yaml").write_text(yaml.safe_dump([figure]))
    section = headlines(load(results, "smoke", [suite])[0])[0].section
    rows = [line.split(",") for line in section.csv.splitlines()]
    assert rows[0][-1] == "row" and all(row[-1] == row[4] for row in rows[1:]), "x and rows are the ranks here"
    look = Look("", 0, "o", 0)
    values = {"one": 2.0, "two": 1.0, "three": 5.0}
    plot = Plot("", tuple(Series(name, look, (cell(value),)) for name, value in values.items()), "", "")
    picture = kinds()["fastest"].draw(plot)
    assert "<title>1\u202fKiB, 8: two 1.00, one 2.00, three 5.00</title>" in picture and ">2x<" in picture


def test_an_error_between_levels_has_its_sign_where_both_have_the_case(tmp_path: Path) -> None:
    results, suite = levels_example(tmp_path)
    series = {
        "name": "tcp",
        "select": {"arm": "tcp", "fabric": "simulated"},
        "against": {"arm": "tcp", "fabric": "netns"},
    }
    figure = yaml.safe_load(FIGURES)[0] | {
        "kind": "errors",
        "experiment": "scaling",
        "base_evidence": "emulated",
        "y": {"label": "error", "difference": True, "ideal": 0.08},
        "over": ["ranks"],
        "series": [series],
        "claims": ["levels.dnn"],
    }
    (suite.folder / "figures.yaml").write_text(yaml.safe_dump([figure]))
    data = load(results, "full", [suite])[0]
    section = headlines(data)[0].section
    rows = {int(row[4]): row[5:8] for row in csv.reader(section.csv.splitlines()[1:])}
    pairs = between("", [run for run in data.completed("train") if training(run).experiment == "scaling"])
    wanted = {pair.ranks: pair.error for pair in pairs if (pair.upper.arm, pair.lower.level) == ("tcp", "emulated")}
    assert set(rows) == set(wanted) == {2, 4}, "8 ranks were predicted alone"
    for ranks, (value, low, high) in rows.items():
        assert float(value) == pytest.approx(wanted[ranks])
        assert not low or float(low) < float(value) < float(high)
    assert any(low for _, low, _ in rows.values()), "six launches have an interval"
    (panel,) = section.panels
    assert "<title>tcp at 4, simulated: " in panel.picture
    series.pop("against")
    (suite.folder / "figures.yaml").write_text(yaml.safe_dump([figure]))
    with pytest.raises(SpecError, match="'base_evidence' is that of 'against'"):
        load_headlines(suite)


def cell(value: float) -> Mark:
    return Mark(1024, value, None, None, "simulated", True, "", "", row=8)


def test_figures_without_launches_are_one_line(made: tuple[Path, Suite, str]) -> None:
    nothing = made[2].split('<section id="headline-nothing"')[1].split("</section>")[0]
    assert "No launch gives this figure a value yet." in nothing and "<svg viewBox" not in nothing
    assert "No launch gives a value yet for: never run." in made[2]


def set_kind(figure: dict) -> None:
    figure["kind"] = "lvels"


def set_claim(figure: dict) -> None:
    figure["claims"][0] = "example.clam0"


def set_metric(figure: dict) -> None:
    figure["metric"] = "spedup"


def set_pair_metric(figure: dict) -> None:
    figure["metric"] = "same_convergence"


def set_field(figure: dict) -> None:
    figure["series"][0]["select"] = {"transprot": "tcp"}


def set_row(figure: dict) -> None:
    figure["series"][0]["published"] = ["example.cliam0"]


def set_key(figure: dict) -> None:
    figure["x"]["labell"] = "nodes"


def set_log(figure: dict) -> None:
    figure["x"]["log"] = True


def set_lines(figure: dict) -> None:
    figure["y"]["lines"] = [{"value": 2.0, "label": "target"}]


def drop_x(figure: dict) -> None:
    del figure["x"]


def drop_against(figure: dict) -> None:
    del figure["series"][0]["against"]


def set_fastest(figure: dict) -> None:
    figure["kind"] = "fastest"


def set_rows(figure: dict) -> None:
    figure["rows"] = "ranks"


def set_wrong_rows(figure: dict) -> None:
    figure |= {"kind": "fastest", "rows": "rnaks"}


def set_both(figure: dict) -> None:
    figure["series"][0]["claim"] = "example.claim0"


def set_claims(figure: dict) -> None:
    figure["series"][0] = {"name": "tcp", "claims": ["example.claim0"]}


def set_agreement(figure: dict) -> None:
    set_claims(figure)
    figure["kind"] = "agreement"


def drop_row(figure: dict) -> None:
    set_agreement(figure)
    del figure["series"][1:], figure["x"]["row"]


def set_wrong_row(figure: dict) -> None:
    set_agreement(figure)
    del figure["series"][1:]
    figure["x"]["row"] = "gpus"


def set_unknown_claims(figure: dict) -> None:
    set_wrong_row(figure)
    figure["series"][0]["claims"] = ["example.clam0"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (set_kind, "[0].kind: unknown kind of figure 'lvels'; did you mean 'levels'?"),
        (set_claim, "[0].claims[0]: unknown claim 'example.clam0'; did you mean 'example.claim0'?"),
        (set_metric, "[0].metric: unknown metric 'spedup'; did you mean 'speedup'?"),
        (set_pair_metric, "[0].metric: metric 'same_convergence' has no value per launch; draw the claims that use it"),
        (set_field, "[0].series[0].select.transprot: unknown field of a case 'transprot'; did you mean 'transport'?"),
        (set_row, "[0].series[0].published[0]: unknown row of published.yaml 'example.cliam0'; did you mean"),
        (set_key, "[0].x.labell: unknown key; did you mean 'label'?"),
        (set_log, "[0].x.log: kind 'levels' chooses the scale of its x axis; leave it out"),
        (set_lines, "[0].y.lines: kind 'levels' draws no curves; leave it out"),
        (drop_x, "[0].kind: kind 'levels' needs 'x': ranks"),
        (drop_against, "[0].metric: metric 'speedup' compares: every series gives 'against'"),
        (set_fastest, "[0].kind: kind 'fastest' needs 'rows': the field that its rows show"),
        (set_rows, "[0].rows: kind 'levels' has no rows of a field; leave it out"),
        (set_wrong_rows, "[0].rows: unknown field of a case 'rnaks'; did you mean 'ranks'?"),
        (set_both, "series 'tcp' needs 'claim', 'claims' or 'select', one of them"),
        (set_claims, "[0].series[0].claims: drawn by kind agreement only"),
        (set_agreement, "[0].series[1]: kind 'agreement' draws claims over what their rows count: give 'claims'"),
        (drop_row, "[0].x: kind 'agreement' needs 'row'"),
        (set_wrong_row, "[0].series[0].claims[0]: row 'example.claim0' has no number 'gpus' in its x"),
        (set_unknown_claims, "[0].series[0].claims[0]: unknown claim 'example.clam0'; did you mean 'example.claim0'?"),
    ],
)
def test_a_mistake_is_one_line_with_file_line_and_key(
    tmp_path: Path, change: Callable[[dict], None], expected: str
) -> None:
    _, suite = example(tmp_path)
    write_files(suite.folder)
    entries = yaml.safe_load(FIGURES)
    change(entries[0])
    (suite.folder / "figures.yaml").write_text(yaml.safe_dump(entries, sort_keys=False))
    with pytest.raises(SpecError) as failed:
        load_headlines(suite)
    assert re.match(r".*figures\.yaml:\d+: ", str(failed.value))
    assert expected in str(failed.value) and "\n" not in str(failed.value)


def test_a_row_whose_place_is_no_number_is_told_at_its_own_line(tmp_path: Path) -> None:
    _, suite = example(tmp_path)
    write_files(suite.folder)
    entries = yaml.safe_load(FIGURES)
    set_wrong_row(entries[0])
    (suite.folder / "figures.yaml").write_text(yaml.safe_dump(entries, sort_keys=False))
    rows = yaml.safe_load(PUBLISHED)
    rows["rows"][0]["x"]["gpus"] = "\0"
    (suite.folder / "published.yaml").write_text(yaml.safe_dump(rows))
    wrong = r"published\.yaml:\d+: rows\[0\]\.x\.gpus: '\\x00' is not a number, and .*figures\.yaml:\d+: .* draws it$"
    with pytest.raises(SpecError, match=wrong):
        load_headlines(suite)


def test_no_figure_draws_times_of_launches_that_run_beside_others(tmp_path: Path) -> None:
    _, suite = example(tmp_path)
    write_files(suite.folder)
    beside = {name: replace(experiment, timed=False) for name, experiment in suite.experiments.items()}
    (suite.folder / "claims.yaml").write_text(
        "- {id: example.claim0, kind: context}\n- {id: example.recalled, kind: context}\n"
    )
    with pytest.raises(
        SpecError, match=r"figures\.yaml:\d+: \[0\]\.metric: .* draws times, and launches of experiment"
    ):
        load_headlines(replace(suite, experiments=beside))


def test_every_suite_of_the_tree_has_figures_that_load() -> None:
    loaded = {folder.name: load_headlines(load_suite(folder)) for folder in list_suites(ROOT / "suites")}
    assert {name for name, figures in loaded.items() if figures} >= {"das2016", "xue2019", "awan2019", "zou2017"}


def test_the_template_has_a_figure_that_loads() -> None:
    figures = load_headlines(load_suite(ROOT / "suites" / "_template"))
    assert figures is not None and len(figures.figures) == 1


def test_kinds_are_the_files_that_register_one() -> None:
    folder = ROOT / "harness" / "scaleproof" / "report" / "figures"
    registered = {
        path.stem for path in folder.glob("*.py") if re.search(r"^KIND = FigureKind\(", path.read_text(), re.M)
    }
    assert registered == set(kinds())
