"""A claim's `x` has what its metric needs: every mistake in it, or in a row that it names, is one line with file, line
and the nearest valid name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scaleproof.claims.arithmetic import Arguments
from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.metrics import METRICS
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import list_suites, load_suite

SUITES = Path(__file__).parents[3] / "suites"
VGG_A = "x: &vgga {workload: vgg_a, points: 1, overlap: 1}"
FC7 = "x: &fc7 {workload: vgg_a, layer: fc7, nodes: 128, minibatch: 512}"
SPEEDUP = "x: {speedup: das2016.cddnn.n16.speedup}"

MISTAKES = [
    (VGG_A, VGG_A.replace("points: 1, ", ""), "x.points: missing"),
    (VGG_A, VGG_A.replace("points", "point"), "x.point: unknown key; did you mean 'points'?"),
    (VGG_A, VGG_A.replace("vgg_a,", "vgg_b,"), "x.workload: unknown workload 'vgg_b'; did you mean 'vgg_a'?"),
    (VGG_A, VGG_A.replace("vgg_a,", "lstm,"), "x.workload: workload 'lstm' has no convolution; known: "),
    (VGG_A, VGG_A.replace("vgg_a,", "[vgg_a],"), "x.workload: ['vgg_a'] is not text"),
    (VGG_A, VGG_A.replace("overlap: 1", "overlap: 2"), "x.overlap: 2 is not allowed; it must be at most 1"),
    (VGG_A, "x: &vgga [1]", "x: [1] is not a mapping"),
    (FC7, FC7.replace("fc7,", "fc8x,"), "has no fully connected layer 'fc8x'; did you mean 'fc8'?"),
    (FC7, FC7.replace("128", "0"), "x.nodes: 0 is not allowed; it must be at least 1"),
    (SPEEDUP, SPEEDUP.replace("n16", "n61"), "published.yaml has no row 'das2016.cddnn.n61.speedup'; did you mean"),
    ("metric: throughput\n", "metric: throughput\n  x: {a: 1}\n", "x: only a metric that is arithmetic has arguments"),
]
ROWS = [
    ("das2016", "x: {nodes: 16", "x: {node: 16", "x.node: unknown key; did you mean 'nodes'?"),
    ("zou2017", "metric: speedup", "metric: speedupp", "unknown metric 'speedupp'; did you mean 'speedup'?"),
    ("zou2017", "R_O: 0.1", "R_O: x", "x.R_O: 'x' is not a number"),
]


def copied(suite: str, tmp_path: Path) -> Path:
    folder = tmp_path / suite
    shutil.copytree(SUITES / suite, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def changed(path: Path, right: str, wrong: str) -> int:
    """The line of a file in which a text was replaced."""
    text = path.read_text()
    assert right in text, right
    path.write_text(text.replace(right, wrong, 1))
    return text[: text.index(right)].count("\n") + 1


@pytest.mark.parametrize(("right", "wrong", "message"), MISTAKES, ids=[message for _, _, message in MISTAKES])
def test_a_mistake_in_x_is_found_when_claims_are_read(right: str, wrong: str, message: str, tmp_path: Path) -> None:
    folder = copied("das2016", tmp_path)
    line = changed(folder / "claims.yaml", right, wrong)
    with pytest.raises(SpecError) as caught:
        load_claims(load_suite(folder))
    where, _, _ = str(caught.value).partition(": ")
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert where in (f"{folder}/claims.yaml:{line}", f"{folder}/claims.yaml:{line + 1}")


@pytest.mark.parametrize(("suite", "right", "wrong", "message"), ROWS, ids=[message for _, _, _, message in ROWS])
def test_a_mistake_in_a_row_that_arithmetic_needs_points_at_the_row(
    suite: str, right: str, wrong: str, message: str, tmp_path: Path
) -> None:
    folder = copied(suite, tmp_path)
    line = changed(folder / "published.yaml", right, wrong)
    with pytest.raises(SpecError) as caught:
        judge_suite(load_suite(folder), "smoke", Store(tmp_path / "results"))
    assert str(caught.value).startswith(f"{folder}/published.yaml:{line}: ") and message in str(caught.value)


def test_every_metric_that_is_arithmetic_says_what_its_x_needs() -> None:
    metrics = {
        **METRICS,
        **{name: metric for suite in list_suites(SUITES) for name, metric in suite_metrics(suite).items()},
    }
    without = {name for name, metric in metrics.items() if metric.model is not None and metric.x is Arguments}
    assert without == {"lemma_rows_off"}, "it reads rows, and needs no arguments"
    described = [field for metric in metrics.values() for field in metric.x.model_fields.values()]
    assert described and all(field.description for field in described)
