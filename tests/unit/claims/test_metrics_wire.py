"""Bytes on the links from the interface counters of hand-made records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics_wire import wire_bytes_ratio
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.core.record_schema import Check, RankNetwork, Record
from tests.unit.claims.claims_samples import COLLECTIVE, TRAIN, record, samples

SUITE = Path(__file__).parents[3] / "suites" / "das2016"
REDUCED = {**COLLECTIVE, "fabric": "netns"}
LEAST = 4 * 4000 * 1.5
"""Bytes of two timed and two verified all-reduces on 4 ranks."""
HYBRID: dict[str, Any] = {
    **TRAIN,
    "transport": "tcp",
    "collective": "ring",
    "strategy": "hybrid",
    "ranks": 4,
    "fabric": "netns",
    "minibatch": 8,
    "steps": 2,
}


def node(rank: int, sent: int, received: int, namespace: str | None = None) -> RankNetwork:
    """A rank whose link moved bytes in its timed region, and whose loopback moved more."""
    before = {"tx_bytes": 500, "rx_bytes": 500, "tx_packets": 0, "rx_packets": 0}
    after = {**before, "tx_bytes": 500 + sent, "rx_bytes": 500 + received}
    loopback = {**before, "tx_bytes": 10**9, "rx_bytes": 10**9}
    return RankNetwork(
        rank=rank,
        namespace=namespace or f"node{rank}",
        asked_bytes=0,
        before={"eth0": before, "lo": before},
        after={"eth0": after, "lo": loopback},
    )


def reduced(network: list[RankNetwork]) -> float | None:
    checks = [Check(rank=0, name=f"all_reduce.4000.{salt}", passed=True, detail="") for salt in (1, 2)]
    rows = [(rank, "all_reduce", call, 0, 1, 4000) for rank in range(4) for call in range(2)]
    return wire_bytes_ratio(record(REDUCED, network=network, checks=checks), samples(*rows))


def test_the_busiest_link_counts_in_its_busier_direction_without_loopback() -> None:
    network = [node(rank, round(LEAST), round(LEAST)) for rank in range(3)]
    assert reduced([*network, node(3, round(LEAST), round(LEAST))]) == pytest.approx(1)
    assert reduced([*network, node(3, 2 * round(LEAST), 5)]) == pytest.approx(2)
    assert reduced([*network, node(3, 5, 3 * round(LEAST))]) == pytest.approx(3)


def test_ranks_that_share_interfaces_have_no_bytes_of_their_own() -> None:
    assert reduced([node(rank, 1, 1, namespace="host") for rank in range(4)]) is None
    assert reduced([node(0, 1, 1), node(1, 1, 1), node(2, 1, 1, "shared"), node(3, 1, 1, "shared")]) is None
    assert reduced([]) is None


def hybrid(groups: int, counted: int, chosen: int | None = None) -> Launch:
    """A launch of strategy hybrid; by formula a rank sends 1000 bytes a step."""
    facts = {"sent": {"strips": 1000}, "formula": {"strips": 1000.0}, "groups": chosen or groups}
    made: Record = record(
        {**HYBRID, "strategy.groups": groups}, network=[node(rank, counted, counted) for rank in range(4)]
    )
    for status in made.ranks:
        status.facts["hybrid"] = facts
    return Launch(made, samples((0, "step", 0, 0, 1)))


def test_hybrid_bytes_are_those_of_all_timed_steps() -> None:
    metric = suite_metrics(SUITE)["hybrid_wire_ratio"].launch
    assert metric is not None
    launch = hybrid(1, 2100)
    assert metric(launch.record, launch.samples) == pytest.approx(1.05)


def test_the_chosen_number_of_groups_is_compared_with_other_numbers_only() -> None:
    metric = suite_metrics(SUITE)["fewest_bytes_ratio"].block
    assert metric is not None
    assert metric([hybrid(0, 800, chosen=2), hybrid(1, 1000), hybrid(4, 1600)], None) == pytest.approx(0.8)
    assert metric([hybrid(0, 800, chosen=2), hybrid(1, 1000), hybrid(2, 780)], None) == pytest.approx(0.8)
    assert metric([hybrid(0, 1200, chosen=2), hybrid(1, 1000)], None) == pytest.approx(1.2)
    assert metric([hybrid(0, 800, chosen=2), hybrid(2, 800)], None) is None
