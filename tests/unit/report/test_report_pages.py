"""Pages from a results folder: nothing hidden, nothing unescaped, the same bytes each time."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest
from markupsafe import Markup

from scaleproof.calibrate.attainable import Attainable, NoBound
from scaleproof.claims.claim_form import Rule
from scaleproof.claims.controls import with_control
from scaleproof.claims.outcome import Verdict
from scaleproof.claims.verdict_rules import Estimate, apply_rule
from scaleproof.record.store import Store
from scaleproof.report.build import build
from scaleproof.report.csvs import FIRST
from scaleproof.report.data import STATUSES, anchor, load
from scaleproof.report.figures.style import LegendEntry
from scaleproof.report.glossary import render
from scaleproof.report.groups import Summary
from scaleproof.report.messages import TRANSFER, table_of
from scaleproof.report.numbers import percent
from scaleproof.report.run import HEAD, TAIL, logs
from scaleproof.report.sections import section
from scaleproof.report.suite import sections
from scaleproof.report.verdicts import shown_rule
from scaleproof.spec.suite import Suite
from scaleproof.stats.intervals import Interval, Method
from tests.short_form import case_from
from tests.unit.claims.claims_samples import TRAIN
from tests.unit.report.report_results import claim, example, range_outcome, rate_cells


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Suite, Path]:
    """Results, suite and the folder of pages."""
    root = tmp_path_factory.mktemp("report")
    results, suite = example(root)
    return results, suite, build(results, root / "reports", "smoke", [suite]).parent


class Links(HTMLParser):
    """Targets and ids of a page; `scripts` counts script elements."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.scripts = 0
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        for name, value in attrs:
            if name in ("href", "xlink:href", "src") and value:
                self.links.append(value)
            if name == "id" and value:
                self.ids.append(value)


def test_every_link_leads_somewhere_in_the_report(made: tuple[Path, Suite, Path]) -> None:
    pages = {page: Links(page) for page in made[2].rglob("*.html")}
    for page, links in pages.items():
        assert len(links.ids) == len(set(links.ids)), page
        for link in links.links:
            if link.startswith("data:"):
                continue
            name, _, target = link.partition("#")
            goal = (page.parent / name).resolve() if name else page
            assert goal.exists(), f"{page}: {link}"
            assert not target or target in pages[goal].ids, f"{page}: {link}"


def test_nothing_is_fetched_from_outside(made: tuple[Path, Suite, Path]) -> None:
    for page in made[2].rglob("*.html"):
        text = page.read_text()
        assert not re.search(r'(?:src|href)="(?:https?:)?//', text), page
        assert "@import" not in text and "url(http" not in text, page


def test_output_of_a_rank_is_escaped_on_its_page(made: tuple[Path, Suite, Path]) -> None:
    hostile = [page for page in made[2].rglob("*.html") if "owned" in page.read_text()]
    assert len(hostile) >= 3
    for page in hostile:
        assert Links(page).scripts == 1, page
        assert "\x1b" not in page.read_text(), page


def test_the_same_results_give_the_same_bytes(made: tuple[Path, Suite, Path], tmp_path: Path) -> None:
    results, suite, reports = made
    again = build(results, tmp_path, "smoke", [suite]).parent
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")} for folder in (reports, again)
    )
    assert first == second


def test_every_planned_launch_is_counted_and_shown(made: tuple[Path, Suite, Path]) -> None:
    results, suite, reports = made
    (data,) = load(results, "smoke", [suite])
    counts = data.counts()
    assert counts["planned"] == sum(counts[status] for status in STATUSES) == 30 + 3 + 4
    assert (counts["failed"], counts["not_runnable"], counts["missing"]) == (1, 1, 2)
    page = (reports / "example.html").read_text()
    table = page[page.index('id="t-launches"') :]
    assert table[table.index("<tbody>") :].count("<tr data-tags=") == counts["planned"]
    assert table.count("topology=closed-ring") == 12 and '<select data-axis="topology">' in page
    assert "no such library" in table


def test_machine_copies_hold_all_claims_and_planned_launches(made: tuple[Path, Suite, Path]) -> None:
    reports = made[2]
    claims = json.loads((reports / "claims.json").read_text())["claims"]
    assert len(claims) == len(get_args(Verdict)) + 1
    assert {
        "id",
        "suite",
        "statement",
        "published",
        "ours",
        "interval",
        "n",
        "unit",
        "evidence",
        "verdict",
        "rule",
        "runs",
    } <= claims[0].keys()
    rows = list(csv.reader((reports / "runs.csv").read_text().splitlines()))
    assert tuple(rows[0][: len(FIRST)]) == FIRST
    assert "throughput" in rows[0]
    assert len(rows) == 1 + 37


def test_every_claim_has_its_place_with_its_rule(made: tuple[Path, Suite, Path]) -> None:
    page = (made[2] / "example.html").read_text()
    for number in range(len(get_args(Verdict)) + 1):
        assert page.count(f'id="claim-example.claim{number}"') == 1
        assert f"number {number}" in page


@pytest.mark.parametrize("name", ["index.html", "example.html"])
def test_a_value_bears_its_evidences_details_and_that_its_network_was_reduced(
    made: tuple[Path, Suite, Path], name: str
) -> None:
    page = (made[2] / name).read_text()
    assert "measured, soft-RoCE" in page
    assert page.count("reduced, not comparable: the full network takes 182 times the work per sample") == 1


def test_every_rate_stands_beside_what_the_machine_can_do(made: tuple[Path, Suite, Path]) -> None:
    results, suite, reports = made
    (data,) = load(results, "smoke", [suite])
    trained = next(run for run in data.completed("train") if run.metric("throughput") and run.row["transport"] == "tcp")
    rate = trained.metric("throughput") or 0.0
    attained = trained.attained("throughput", rate)
    assert isinstance(attained, Attainable) and 0 < attained.share < 1
    shown = f"{percent(attained.share)} of attainable"
    page = (reports / "example.html").read_text()
    row = page.split(f'href="runs/{trained.launch}.html">{trained.launch}</a></th>')[1].split("</tr>")[0]
    assert shown in row and re.search(r'title="of [^"]+ samples/s: made up"', row), "with what it is a share of"
    throughput = page.split('<section id="throughput"')[1].split("</section>")[0]
    assert "of attainable</span>" in throughput, "its table"
    assert re.search(rf"launch {trained.launch}: [\d.]+ samples/s, {shown}", throughput), "its dots"
    own_page = (reports / "runs" / f"{trained.launch}.html").read_text()
    assert shown in own_page and "% of the bound measured on machine madeup" in own_page
    result = claim("reproduced", 1, (trained.launch,)).model_copy(update={"ours": rate, "base": None})
    assert data.attained(result) == attained
    assert data.attained(claim("reproduced", 1, (trained.launch,))) is None, "a ratio to a base is no rate"


def test_the_base_of_a_claim_has_the_bound_of_its_own_launches(made: tuple[Path, Suite, Path]) -> None:
    (data,) = load(made[0], "smoke", [made[1]])
    trained = {run.record.case.ranks: run for run in data.completed("train") if run.record}
    judged = claim("reproduced", 1, (trained[2].launch, trained[1].launch))
    assert data.base_attained(judged) == trained[1].attained("throughput", 10.0)
    assert isinstance(data.base_attained(claim("reproduced", 1, ())), NoBound)
    page = (made[2] / "example.html").read_text()
    assert 'n = 6: ranks 1 <span class="why attained" title="its launches are not in these results">no bound' in page


def test_a_rate_without_a_bound_says_so_and_why(made: tuple[Path, Suite, Path]) -> None:
    page = (made[2] / "example.html").read_text()
    over_tcp = page.split('<section id="transfer-transfer-2"')[1].split("</section>")[0]
    assert '<span class="why attained" title="loopback was not measured on machine madeup">no bound</span>' in over_tcp
    assert re.search(r"tcp, 1.MiB: [\d.]+, no bound: loopback was not measured", over_tcp), "its mark"


def test_no_rate_of_a_table_stands_alone(made: tuple[Path, Suite, Path]) -> None:
    (data,) = load(made[0], "smoke", [made[1]])
    cells = rate_cells(sections(data))
    assert len(cells) > 6 and [cell for cell in cells if cell.attained is None] == []


def test_a_series_over_soft_roce_says_so_in_every_legend(made: tuple[Path, Suite, Path]) -> None:
    (data,) = load(made[0], "smoke", [made[1]])
    run = next(run for run in data.completed("train") if run.row["transport"] == "tcp")
    assert run.record is not None
    soft = case_from({**TRAIN, "arm": "tcp", "transport": "rdma", "collective": "ring", "fabric": "guests"})
    emulated = replace(run, record=run.record.model_copy(update={"case": soft, "evidence": "emulated"}))
    key = [LegendEntry(Markup("-"), name) for name in ("tcp", "gloo")]
    for runs, name in (([run], "tcp"), ([emulated], "tcp (soft-RoCE)")):
        drawn = section("id", "title", "how", [], [], key, (), (), runs)
        assert [entry.name for entry in drawn.key] == [name, "gloo"]


def test_bandwidths_of_messages_stand_beside_what_the_machine_can_do(made: tuple[Path, Suite, Path]) -> None:
    (data,) = load(made[0], "smoke", [made[1]])
    run = next(run for run in data.completed("transfer") if run.row["transport"] == "shm")
    values = {"shm": {1 << 20: Summary(6.15, 6.0, 6.3, 0.969, 6)}}
    bandwidth, time = TRANSFER[1], TRANSFER[0]
    bound = run.attained("transfer_bandwidth", 6.15, 1 << 20)
    assert isinstance(bound, Attainable) and bound.share == pytest.approx(0.5)
    assert table_of(values, bandwidth, [run]).rows[0].cells[1].attained == bound
    assert table_of(values, time, [run]).rows[0].cells[1].attained is None
    assert table_of(values, bandwidth).rows[0].cells[1].attained is None


def test_a_rule_over_a_range_is_its_finding_and_then_every_point(made: tuple[Path, Suite, Path]) -> None:
    judged = claim("reproduced", 0, ())
    printed = shown_rule(judged)
    assert printed.finding == "the same at all 4 points of the range, each tested at its own 95 %"
    assert len(printed.rests_on) == 4
    assert "; ".join([printed.finding, *printed.rests_on]) == judged.rule
    for name in ("index.html", "example.html"):
        page = (made[2] / name).read_text()
        assert all(f"<li>{each}</li>" in page for each in printed.rests_on)


@pytest.mark.parametrize(
    ("verdict", "clause_of_control"),
    [("reproduced", "but the control shows the effect too"), ("inconclusive", "the control decides nothing")],
)
def test_what_the_control_shows_is_never_folded_away(verdict: Verdict, clause_of_control: str) -> None:
    shows = Estimate(3, Interval(2, 4, 0.969, Method.ORDER_STATISTICS), 6)
    control = apply_rule(Rule(name="at_least", value=3 if verdict == "inconclusive" else 2), shows, None, "higher")
    outcome = with_control(range_outcome(), control)
    judged = claim("reproduced", 0, ()).model_copy(update={"outcome": outcome})
    printed = shown_rule(judged)
    assert clause_of_control in printed.finding
    assert len(printed.rests_on) == 4 and not any("control" in clause for clause in printed.rests_on)


def test_a_size_without_results_still_gives_a_page(made: tuple[Path, Suite, Path], tmp_path: Path) -> None:
    page = build(tmp_path / "nothing", tmp_path / "reports", "smoke", [made[1]]).read_text()
    assert "There are no verdicts at size smoke yet" in page


def test_the_banner_says_which_machine_this_was_and_that_smoke_is_no_result(made: tuple[Path, Suite, Path]) -> None:
    page = (made[2] / "index.html").read_text()
    assert "a smoke number is not a result" in page
    for fact in (
        "Made-up Processor &lt;2&gt;",
        "7.81\u202fGiB",
        "6.1.0-test",
        "measured",
        "2026-01-01",
        "digest dddd",
        "launches with more ranks than cores",
    ):
        assert fact in page


def test_the_index_stays_small(made: tuple[Path, Suite, Path]) -> None:
    assert (made[2] / "index.html").stat().st_size < 2_000_000


def test_a_run_page_shows_bytes_on_the_wire_beside_bytes_asked(made: tuple[Path, Suite, Path]) -> None:
    page = next(
        page
        for page in sorted((made[2] / "runs").glob("*.html"))
        if "2 ranks" in page.read_text() and "✓ ok" in page.read_text()
    )
    text = page.read_text()
    assert "lo (carried it)" in text
    assert "105.6 %" in text, "95 MB on the wire for 2 times 45 MB asked"
    assert "every pair of ranks connects on lo" in text and "± 0.900" in text


def test_launches_that_share_cores_with_communication_are_marked(made: tuple[Path, Suite, Path]) -> None:
    records = [record for record in Store(made[0]).records() if record.status == "ok"]
    for marked in (True, False):
        record = next(record for record in records if record.shared_cores is marked and not record.oversubscribed)
        assert (", shared cores" in (made[2] / "runs" / f"{record.launch}.html").read_text()) is marked
    assert "communication threads or servers share cores" in (made[2] / "index.html").read_text()


def test_a_failed_run_shows_who_was_silent_first_and_what_the_others_waited_for(made: tuple[Path, Suite, Path]) -> None:
    text = next(page.read_text() for page in (made[2] / "runs").glob("*.html") if "Flight recorder" in page.read_text())
    assert "was silent first" in text and "everybody waits for it" in text and "Stacks of rank 0" in text


def test_a_section_quotes_the_noise_floor_of_its_metrics(made: tuple[Path, Suite, Path]) -> None:
    text = (made[2] / "example.html").read_text()
    assert "throughput ± 3.4 %" in text
    assert "1.23" in (made[2] / "machine.html").read_text()


def test_a_long_log_keeps_its_ends_and_its_line_numbers(tmp_path: Path) -> None:
    total = HEAD + TAIL + 500
    (tmp_path / "rank-10.log").write_text("\n".join(f"line {number}" for number in range(1, total + 1)))
    (tmp_path / "rank-2.log").write_bytes(b"\xff broken\n")
    (tmp_path / "launcher.log").write_text("")
    second, tenth, launcher = logs(tmp_path)
    assert (second.rank, tenth.rank, launcher.rank) == ("2", "10", "launcher")
    assert (tenth.total, tenth.left_out, tenth.lines[-1]) == (total, 500, (total, f"line {total}"))
    assert tenth.lines[HEAD][0] == HEAD + 501


def test_metric_pages_show_raw_html_as_text_and_link_each_other() -> None:
    html = render(
        "# a\n\n<script>x</script> [b](b.md) [out](../x.md) [far](https://example.org/)\n\n| a | b |\n"
        "|---|---|\n| 1 | 2 |\n"
    )
    assert "<script>" not in html
    assert '<a href="#b">b</a>' in html
    assert "../x.md" not in html and "https://example.org/" in html
    assert "<h2>a</h2>" in html and "<table>" in html


def test_anchors_are_harmless_and_distinct() -> None:
    assert anchor("das2016.vgga_n-1") == "das2016.vgga_n-1"
    assert re.fullmatch(r"[\w.-]+", anchor('a" onclick="x'))
    assert anchor("a b") != anchor("a/b")
