"""Bytes that interfaces of nodes of namespaces count, as metrics of real launches: no transport can hide any."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.metrics import PER_LAUNCH
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from tests.integration.launches import assert_nothing_left, launches
from tests.integration.netns import need_netns, netns_case

SUITE = Path(__file__).parents[2] / "suites" / "das2016"
MIB = 1 << 20
HEADERS = 1.1
"""Upper bound of headers and acknowledgements: docs/metrics/wire_bytes_ratio.md."""
REDUCED: dict[str, Any] = {"ranks": 4, "sizes": [MIB], "iterations": 2, "link_mbit": 1000}
HYBRID: dict[str, Any] = {
    "program": "train",
    "strategy": "hybrid",
    "strategy.bucket_mib": 1,
    "workload": "dnn_digits",
    "workload.data": "digits",
    "minibatch": 128,
    "steps": 4,
    "warmup": 1,
    "ranks": 4,
    "link_mbit": 1000,
}
Values = dict[str, float | None]


def values(results: Path, cases: list[Any]) -> dict[str, Values]:
    """By arm, the metrics of its one launch that are about bytes."""
    need_netns()
    metrics = {**PER_LAUNCH, **{name: metric.launch for name, metric in suite_metrics(SUITE).items() if metric.launch}}
    outcome = run_plan(launches(cases), results, size="ci", deadline_s=120)
    assert_nothing_left(results, outcome.launches)
    by_arm = {}
    for launch in outcome.launches:
        record, _ = Store(results).load(launch)
        assert (record.status, record.failure) == ("ok", None)
        samples = Store(results).frame(record)
        by_arm[record.case.arm] = {
            name: metric(record, samples) for name, metric in metrics.items() if name.endswith("_ratio")
        }
    return by_arm


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Values]:
    return values(
        tmp_path_factory.mktemp("wire"),
        [
            netns_case(arm="ring", **REDUCED),
            netns_case(arm="tree", **{**REDUCED, "collective": "tree"}),
            netns_case(arm="grpc", transport="grpc", **REDUCED),
            netns_case(arm="groups_1", **{**HYBRID, "strategy.groups": 1}),
            netns_case(arm="fewest_bytes", **{**HYBRID, "strategy.groups": 0}),
        ],
    )


@pytest.mark.parametrize("arm", ["ring", "grpc"])
def test_a_ring_puts_on_each_link_what_its_schedule_needs_and_headers(arm: str, honest: dict[str, Values]) -> None:
    ratio = honest[arm]["wire_bytes_ratio"]
    assert ratio is not None and 1 < ratio < HEADERS


def test_a_tree_puts_a_third_more_on_its_busiest_link(honest: dict[str, Values]) -> None:
    ratio = honest["tree"]["wire_bytes_ratio"]
    assert ratio is not None and 4 / 3 < ratio < 4 / 3 * HEADERS


@pytest.mark.parametrize("arm", ["groups_1", "fewest_bytes"])
def test_hybrid_training_puts_the_bytes_of_the_formulas_on_the_links(arm: str, honest: dict[str, Values]) -> None:
    ratio = honest[arm]["hybrid_wire_ratio"]
    assert ratio is not None and 1 < ratio < HEADERS


def test_a_transport_that_sends_more_than_it_counts_is_seen_on_the_wire_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "PYTHONPATH", f"{Path(__file__).parent / 'repeating'}{os.pathsep}{Path(__file__).parents[2] / 'harness'}"
    )
    ratios = values(tmp_path, [netns_case(arm="repeating", **REDUCED)])["repeating"]
    assert ratios["bytes_per_rank_ratio"] == pytest.approx(1, abs=0.001)
    wire = ratios["wire_bytes_ratio"]
    assert wire is not None and 2 < wire < 2 * HEADERS
