"""Passes of pipelines on a suite's page: which launch is drawn, what its bars show, and mistakes in figures.yaml."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from scaleproof.core.recorder import EVENT_DTYPE
from scaleproof.report.build import build
from scaleproof.report.data import load
from scaleproof.report.figures.kinds import Iteration, Plot, RecordedPass, Series
from scaleproof.report.figures.passes import key, passes
from scaleproof.report.figures.pipeline import BACKWARD_ALPHA, BRIGHT, DARK, HUES, colour
from scaleproof.report.figures.style import Look
from scaleproof.report.headlines.load import load_headlines
from scaleproof.report.headlines.page import headlines
from scaleproof.spec.case import AnyCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import Suite, load_suite
from tests.unit.report import report_results

MS = 1_000_000
"""Nanoseconds."""
SUITE = """
suite: piped
title: Two schedules
experiments:
  exact:
    summary: without micro-batches
    base: {program: train, strategy: sync_overlap, workload: {name: cd_dnn, width: 0.25}, minibatch: 8, steps: 2,
           ranks: 2}
    arms: {whole: {transport: tcp, collective: ring}}
    sizes: {smoke: {launches: 2, matrix: [{arms: [whole]}]}}
  times:
    summary: passes of two micro-batches
    base: {program: train, workload: small_gpt, transport: tcp, ranks: 2, minibatch: 8, steps: 2, warmup: 1,
           fabric: {name: netns, link_mbit: 50}, compute: {name: replay, profile: xeon_e5_2666v3_x2, efficiency: 0.5},
           strategy: {name: pipeline, stages: 2, micro_batches: 2, cut: blocks, forward_ms: 16, backward_ms: 32}}
    arms: {both: {strategy.scheme: gpipe}, predicted: {strategy.scheme: dapple}}
    sizes:
      smoke:
        launches: 2
        matrix:
          - {arms: [both, predicted], set: {fabric: {name: simulated, link_mbit: 50}}}
          - {arms: [both]}
          - {arms: [both], set: {strategy.backward_ms: 16}}      # its last launch is missing
"""
PUBLISHED = """
rows:
  - {id: piped.gain, paper: x, statement: It is fast., metric: speedup, unit: x, direction: higher, x: {}, value: 1.3,
     baseline: one, where: null, source: memory, provenance: memory_low, gate: false}
"""
FIGURES = """
- id: headline-passes
  kind: passes
  title: When each rank computes
  caption: Bars.
  alt: Two <panels>
  experiment: times
  y: {label: worker}
  series:
    - {name: GPipe, select: {arm: both, strategy.backward_ms: 32}}
    - {name: 1F1B, select: {arm: predicted}}
    - {name: never run, select: {arm: both, ranks: 1024}}
  claims: [piped.gain]
"""


def events_of_passes(case: AnyCase, rank: int, _dice: Any) -> np.ndarray:
    """Two micro-batches in each of three iterations; the last one begins at 2000 ms on rank 0's clock, and its passes
    take 1 ms longer than those before. Clocks of ranks are apart as `report_results` records it."""
    rows = []
    for step in range(3):
        for direction, first, length in (("forward", 0, 16), ("backward", 48, 32)):
            for number in range(2):
                shift = first + number * length + rank * 16 * (1 if direction == "forward" else -1)
                start = (1000 * step + shift) * MS - 120 * rank
                value = number if "small_gpt" in str(case.workload) else np.nan  # type: ignore[union-attr]
                end = start + (length + (step == 2)) * MS
                rows.append((direction, step, step == 0, start, end, 0, value))
    return np.array(rows, EVENT_DTYPE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Suite]:
    """Results and the suite with a figure."""
    root = tmp_path_factory.mktemp("piped")
    folder = root / "suites" / "piped"
    folder.mkdir(parents=True)
    (folder / "suite.yaml").write_text(SUITE)
    (folder / "published.yaml").write_text(PUBLISHED)
    (folder / "claims.yaml").write_text("- {id: piped.gain, kind: context}\n")
    (folder / "figures.yaml").write_text(FIGURES)
    suite = load_suite(str(folder))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(report_results, "_events", events_of_passes)
        report_results.make(root / "results", suite, "smoke")
    return root / "results", suite


def rows_of(made: tuple[Path, Suite]) -> list[dict[str, str]]:
    text = headlines(load(made[0], "smoke", [made[1]])[0])[0].section.csv
    return list(csv.DictReader(text.splitlines()))


def test_the_first_launch_at_the_strongest_level_is_drawn(made: tuple[Path, Suite]) -> None:
    data = load(made[0], "smoke", [made[1]])[0]
    rows = rows_of(made)
    drawn = {row["series"]: (row["launch"], row["evidence"]) for row in rows}
    assert {name: level for name, (_, level) in drawn.items()} == {"GPipe": "emulated", "1F1B": "simulated"}
    for name, arm in (("GPipe", "both"), ("1F1B", "predicted")):
        able = [
            run.launch
            for run in data.runs
            if run.record and run.record.case.arm == arm and run.record.evidence == drawn[name][1]
            if run.record.case.value("strategy.backward_ms") == 32
        ]
        assert len(able) == 2 and drawn[name][0] == able[0]


def test_bars_are_those_of_the_last_iteration_on_one_clock(made: tuple[Path, Suite]) -> None:
    rows = [row for row in rows_of(made) if row["series"] == "GPipe"]
    assert {row["step"] for row in rows} == {"2"}
    bars = [
        (int(row["rank"]), int(row["micro_batch"]), row["direction"], float(row["start_ms"]), float(row["end_ms"]))
        for row in rows
    ]
    assert bars == [
        (0, 0, "forward", 0.0, 17.0),
        (0, 1, "forward", 16.0, 33.0),
        (0, 0, "backward", 48.0, 81.0),
        (0, 1, "backward", 80.0, 113.0),
        (1, 0, "forward", 16.0, 33.0),
        (1, 1, "forward", 32.0, 49.0),
        (1, 0, "backward", 32.0, 65.0),
        (1, 1, "backward", 64.0, 97.0),
    ]


def test_the_page_names_each_launch_and_what_is_missing(made: tuple[Path, Suite], tmp_path: Path) -> None:
    page = build(made[0], tmp_path, "smoke", [made[1]]).with_name("piped.html").read_text()
    section = page.split('<section id="headline-passes"')[1].split("</section>")[0]
    launches = {row["series"]: row["launch"] for row in rows_of(made)}
    for name, level in (("GPipe", "emulated"), ("1F1B", "simulated")):
        assert f"{name}: 113 ms (launch {launches[name]}, {level})" in section
        assert f'xlink:href="runs/{launches[name]}.html"' in section
    assert "No launch gives a value yet for: never run." in section
    assert 'aria-label="Two &lt;panels&gt;"' in section and "forward pass" in section and "backward pass" in section
    assert "Hollow marks" not in section, "no bar is hollow"
    assert not re.search(r"#0[1-6]0[0-9a-f]{3}", section), "placeholders became variables of the page"


@pytest.mark.parametrize("experiment", ["exact", "times"])
def test_without_passes_of_micro_batches_nothing_is_drawn(
    made: tuple[Path, Suite], tmp_path: Path, experiment: str
) -> None:
    figure = yaml.safe_load(FIGURES)[0]
    arm = "whole" if experiment == "exact" else "both"
    figure |= {"experiment": experiment, "series": [{"name": "whole", "select": {"arm": arm, "minibatch": 8}}]}
    if experiment == "times":
        figure["series"][0]["select"]["ranks"] = 1024
    suite = with_figure(made[1], tmp_path, figure)
    headline = headlines(load(made[0], "smoke", [suite])[0])[0]
    assert headline.section.panels == []
    assert headline.missing == "No launch gives this figure a value yet."


def with_figure(suite: Suite, root: Path, figure: dict) -> Suite:
    """The suite in a folder of its own with this figure instead."""
    folder = root / suite.name
    folder.mkdir()
    for name in ("suite.yaml", "published.yaml", "claims.yaml"):
        (folder / name).write_text((suite.folder / name).read_text())
    (folder / "figures.yaml").write_text(yaml.safe_dump([figure], sort_keys=False))
    return load_suite(str(folder))


def plot(*passes_of_launch: RecordedPass) -> Plot:
    iteration = Iteration("abc", "emulated", 4, passes_of_launch)
    return Plot("alt", (Series("GPipe", Look("", 0, "o", 0), (), iteration=iteration),), "", "rank")


def test_a_bar_has_the_colour_and_the_number_of_its_micro_batch() -> None:
    drawn = passes(
        plot(
            RecordedPass(0, 0, "forward", 0, 10),
            RecordedPass(0, 3, "forward", 10, 20),
            RecordedPass(1, 3, "backward", 20, 40),
            RecordedPass(1, 11, "backward", 40, 40.1),
        )
    )
    fills = re.findall(r"<title>(GPipe, rank [^<]*)</title>\s*<path[^>]*style=\"fill: (#[0-9a-f]{6})", drawn)
    assert [(title.split(",")[1], fill) for title, fill in fills] == [
        (" rank 0: forward of micro-batch 0", HUES[0]),
        (" rank 0: forward of micro-batch 3", HUES[3]),
        (" rank 1: backward of micro-batch 3", colour(3, False)),
        (" rank 1: backward of micro-batch 11", colour(3, False)),
    ]
    texts = re.findall(r"fill: (#[0-9a-f]{6})[^>]*>(\d+)</text>", drawn)
    assert texts == [(BRIGHT, "0"), (DARK, "3"), (DARK, "3")], "the last bar has no room for its number"
    assert "var(--page)" in drawn, "edges have the colour of the page, in dark mode too"


def test_every_number_is_legible_on_its_bar() -> None:
    for hue in range(len(HUES)):
        for direction, forward in (("forward", True), ("backward", False)):
            drawn = passes(plot(RecordedPass(0, hue, direction, 0, 10)))  # type: ignore[arg-type]
            ((ink, _),) = re.findall(r"fill: (#[0-9a-f]{6})[^>]*>(\d)</text>", drawn)
            bright, dark = sorted((luminance(ink), luminance(colour(hue, forward))), reverse=True)
            assert (bright + 0.05) / (dark + 0.05) > 4.4, (hue, direction)


def luminance(text: str) -> float:
    parts = np.array([int(text[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_backward_passes_are_lighter_in_the_figure_and_in_its_key() -> None:
    assert colour(8, True) == colour(0, True) == HUES[0], "hues are taken in turn"
    assert 0 < BACKWARD_ALPHA < 1
    for hue in range(len(HUES)):
        assert luminance(colour(hue, False)) > luminance(colour(hue, True))
    forward, backward = key()
    assert HUES[0] in forward.mark and colour(0, False) in backward.mark


def set_metric(figure: dict) -> None:
    figure["metric"] = "throughput"


def set_unknown_metric(figure: dict) -> None:
    figure["metric"] = "througput"


def drop_experiment(figure: dict) -> None:
    del figure["experiment"]


def set_experiment(figure: dict) -> None:
    figure["experiment"] = "tims"


def set_claim(figure: dict) -> None:
    figure["series"][0] = {"name": "GPipe", "claim": "piped.gain"}


def set_against(figure: dict) -> None:
    figure["series"][0]["against"] = {"arm": "predicted"}


def set_published(figure: dict) -> None:
    figure["series"][0]["published"] = ["piped.gain"]


def set_x(figure: dict) -> None:
    figure["x"] = {"label": "time", "field": "ranks"}


def set_field(figure: dict) -> None:
    figure["series"][0]["select"] = {"amr": "both"}


def set_other_kind(figure: dict) -> None:
    figure["kind"] = "dots"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (set_metric, "[0].metric: kind 'passes' draws passes, no metric; leave it out"),
        (set_unknown_metric, "[0].metric: unknown metric 'througput'; did you mean 'throughput'?"),
        (drop_experiment, "series that 'select' need 'experiment'"),
        (set_experiment, "[0].experiment: unknown experiment 'tims'; did you mean 'times'?"),
        (set_claim, "[0].series[0]: kind 'passes' draws launches: give 'select' alone"),
        (set_against, "[0].series[0]: kind 'passes' draws launches: give 'select' alone"),
        (set_published, "[0].series[0].published: kind 'passes' has no place for rows of the paper"),
        (set_x, "[0].x: kind 'passes' has no x axis"),
        (set_field, "[0].series[0].select.amr: unknown field of a case 'amr'; did you mean 'arm'?"),
        (set_other_kind, "headline-passes: series that 'select' need 'metric'"),
    ],
)
def test_a_mistake_is_one_line(
    made: tuple[Path, Suite], tmp_path: Path, change: Callable[[dict], None], expected: str
) -> None:
    figure = yaml.safe_load(FIGURES)[0]
    change(figure)
    with pytest.raises(SpecError) as failed:
        load_headlines(with_figure(made[1], tmp_path, figure))
    assert re.match(r".*figures\.yaml:\d+: ", str(failed.value))
    assert expected in str(failed.value) and "\n" not in str(failed.value)


def test_passes_of_launches_beside_others_are_not_drawn(made: tuple[Path, Suite]) -> None:
    beside = {name: replace(experiment, timed=False) for name, experiment in made[1].experiments.items()}
    with pytest.raises(SpecError, match=r"\[0\]\.experiment: .* draws times, .* leave out its 'timed: false'$"):
        load_headlines(replace(made[1], experiments=beside))
