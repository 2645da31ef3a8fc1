"""The scaling curves of suite das2016 from size small on: which nodes are predicted and emulated, and where the paper's
values are marked."""

from __future__ import annotations

import pytest

from scaleproof.report.headlines.load import load_headlines
from scaleproof.spec.suite import load_suite

SUITE = load_suite("das2016")
NETWORKS = {("vgg_a", 512), ("vgg_a", 256), ("overfeat_fast", 256), ("cd_dnn", 1024)}
POWERS = [2**exponent for exponent in range(1, 8)]


@pytest.mark.parametrize("size", ["small", "full"])
def test_every_curve_is_predicted_at_each_power_of_two_to_128_and_alone(size: str) -> None:
    planned: dict[tuple[str, int], set[int]] = {}
    for case in SUITE.experiment("scaling").size(size).cases:
        if case.arm in ("hybrid", "alone") and case.fabric == "simulated" and case.value("compute.efficiency") == 0.6:
            planned.setdefault((case.value("workload"), case.value("minibatch")), set()).add(case.ranks)
    assert planned.keys() == NETWORKS
    assert all(sorted(ranks) == [1, *POWERS] for ranks in planned.values())


@pytest.mark.parametrize("size", ["small", "full"])
def test_all_three_networks_are_emulated_to_16_nodes_beside_their_prediction(size: str) -> None:
    cases = [case for case in SUITE.experiment("scaling").size(size).cases if case.arm == "hybrid_tcp"]
    knobs = ("workload", "minibatch", "ranks", "dilation", "shrink")
    emulated, predicted = (
        {tuple(case.value(name) for name in knobs) for case in cases if case.fabric == fabric}
        for fabric in ("netns", "simulated")
    )
    assert emulated <= predicted
    for workload in ("vgg_a", "overfeat_fast", "cd_dnn"):
        assert {8, 16} <= {ranks for name, _, ranks, *_ in emulated if name == workload}


def test_each_judged_speedup_is_a_mark_on_its_curve() -> None:
    declared = load_headlines(SUITE)
    assert declared is not None
    figure = next(figure for figure in declared.figures if figure.id == "headline-speedup")
    marks = {name for series in figure.series for name in series.published}
    judged = {name for name, row in declared.rows.items() if row.gate and row.metric == "speedup" and "nodes" in row.x}
    assert judged and judged <= marks
    drawn = {
        (case.value("workload"), case.value("minibatch"))
        for series in figure.series
        for case in SUITE.experiment("scaling").size("small").cases
        if case.arm in series.select["arm"] and case.value("workload") == series.select["workload"]
    }
    assert drawn >= NETWORKS
