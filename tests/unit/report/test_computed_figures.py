"""Figures that are computed for a page: allocations, trees and frontiers."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from scaleproof.frontiers.points import best_products, single
from scaleproof.report.figures.frontier import _draw
from scaleproof.report.figures.kinds import Plot, kinds
from scaleproof.report.headlines.load import load_headlines
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import load_suite

FIVE = {"cluster": "dgx1v_like", "devices": [0, 2, 3, 4, 7], "collective": "broadcast"}
P100 = {"cluster": "dgx1p_like", "collectives": ["broadcast", "all_reduce"], "pcie_gb_per_s": [6.0, 12.0]}
SMALL = {"workload": "dnn_digits", "batch": 64, "devices": [2, 4], "node": "p3dn", "error": 0.0, "cap_gb": 0.1}


@pytest.mark.parametrize(
    ("name", "given", "columns", "words"),
    [
        (
            "trees",
            FIVE,
            ("tree", "carries_links", "from", "to"),
            ["all links", "tree 1, carries 2", "tree 2, carries 1"],
        ),
        (
            "allocations",
            P100,
            ("collective", "devices", "trees_links", "rings_links", "times_low", "times_high"),
            ["all-reduce", "4 devices", "0 1 2 3 4 5 6 7", "devices 0, 1, 4: trees carry 1.00 links, no ring"],
        ),
        ("frontier", SMALL, ("devices", "memory_gb", "time_s"), ["2 devices", "4 devices", "memory of a device (GB)"]),
    ],
)
def test_a_kind_computes_its_picture_and_its_numbers(
    name: str, given: dict[str, object], columns: tuple[str, ...], words: list[str]
) -> None:
    kind = kinds()[name]
    assert kind.of is not None and kind.table is not None
    of = kind.of.model_validate(given)
    picture = kind.draw(Plot("in words", (), "", "time (s)", of=of))
    assert picture.startswith("<svg") and 'aria-label="in words"' in picture and "var(--muted)" in picture
    assert all(text in picture for text in words)
    named, rows = kind.table(of)
    assert named == columns and rows and all(len(row) == len(columns) for row in rows)


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [((0.14, 0.22, 1.6), (0.1, 2.0)), ((0.2, 1.0), (0.2, 1.0)), ((0.004, 0.3), (0.002, 0.5))],
)
def test_times_of_frontiers_lie_between_two_labels(seconds: tuple[float, ...], labels: tuple[float, float]) -> None:
    axes = Figure().subplots()
    points = {number: best_products([(single(1e9, each), single(0, 0))]) for number, each in enumerate(seconds)}
    _draw(axes, points, None, "black")
    assert axes.get_ylim() == pytest.approx(labels)
    assert set(labels) <= {round(float(tick), 6) for tick in axes.get_yticks()}


def test_each_tree_of_the_table_reaches_every_device() -> None:
    kind = kinds()["trees"]
    assert kind.of is not None and kind.table is not None
    _, rows = kind.table(kind.of.model_validate(FIVE))
    for tree in {row[0] for row in rows}:
        assert {row[3] for row in rows if row[0] == tree} | {0, 2, 3, 4, 7} == {0, 2, 3, 4, 7}
        assert len([row for row in rows if row[0] == tree]) == 4


def test_every_allocation_has_its_mark_and_those_without_a_ring_one_at_either_rate_of_pci_express() -> None:
    kind = kinds()["allocations"]
    assert kind.of is not None and kind.table is not None and kind.key is not None
    of = kind.of.model_validate(P100)
    _, rows = kind.table(of)
    assert len(rows) == 2 * 14 == 2 * len({row[1] for row in rows})
    assert all((row[5] == pytest.approx(2 * float(str(row[4])))) == (not row[3]) for row in rows)
    sizes = [len(str(row[1]).split()) for row in rows[:14]]
    assert sizes == sorted(sizes) and [row[1] for row in rows[:14]] == [row[1] for row in rows[14:]]
    assert [entry.name for entry in kind.key(of)] == [
        "links make a ring",
        "no ring of links: PCI Express in its place, at 6 and 12 GB/s",
    ]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("kind: trees\n  of: {cluster: dgx1v_like, devices: [0, 2], collective: reduce}", "collective"),
        ("kind: allocations\n  of: {cluster: dgx1v_like, collectives: [], pcie_gb_per_s: [6, 12]}", "collectives"),
        ("kind: trees\n  series: [{name: a, claim: mine.own}]", "computes what it draws: give 'of' alone"),
        ("kind: dots\n  of: {cluster: dgx1v_like}", "draws series; leave it out"),
        ("kind: dots", "kind 'dots' needs 'series'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path: Path, entry: str, message: str) -> None:
    suite = load_suite(Path(__file__).resolve().parents[3] / "suites" / "blink2020")
    folder = tmp_path / "blink2020"
    folder.mkdir()
    for file in ("suite.yaml", "claims.yaml", "published.yaml"):
        (folder / file).write_text((suite.folder / file).read_text())
    for part in ("models", "programs"):
        (folder / part).symlink_to(suite.folder / part)
    text = (
        f"- id: one\n  {entry}\n  title: t\n  caption: c\n  alt: a\n  y: {{label: l}}\n  claims: [blink2020.own.few]\n"
    )
    (folder / "figures.yaml").write_text(text)
    with pytest.raises(SpecError, match=message):
        load_headlines(load_suite(folder))
