"""The sniff test on nodes of namespaces: a node that is really slower is named, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.core.node_schema import Sniff
from scaleproof.fabric.netns import core_quota
from scaleproof.fabric.netns.core_quota import Quota
from scaleproof.launch.preflight import sniff_test as sniffing
from scaleproof.launch.preflight.slow_nodes import check, slow
from scaleproof.launch.watch.failure_signs import Sign
from tests.integration.launches import assert_nothing_left
from tests.integration.netns import need_netns

NAMES = ["n0", "n1", "n2", "n3"]
UNEVEN = """
summary: a star of four nodes, one of them on a slower link
source: made up for a test
nodes: 4
switches: [switch]
links:
  - {between: [node0, switch], gbit: 0.4}
  - {between: [node1, switch], gbit: 0.05}
  - {between: [node2, switch], gbit: 0.4}
  - {between: [node3, switch], gbit: 0.4}
"""


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    """No test here runs without them."""
    need_netns()


def sniffed(folder: Path, **fields: Any) -> Sniff:
    measured = sniffing.measured(sniffing.one_rank_each(len(NAMES), fabric="netns", **fields), NAMES, folder)
    assert not isinstance(measured, Sign), measured
    assert_nothing_left(folder, [])
    assert list(folder.glob("*/launch.json")) == []
    return Sniff(cluster="", job="", taken_at="2026-01-01T00:00:00+00:00", nodes=measured)


def test_every_node_gives_all_figures_with_intervals(tmp_path: Path) -> None:
    for index, node in enumerate(sniffed(tmp_path).nodes):
        assert (node.name, node.next) == (NAMES[index], NAMES[(index + 1) % 4])
        for figure in (node.copied, node.multiplied, node.rate, node.trip):
            assert figure is not None and figure.n == 9 and figure.low is not None and figure.high is not None
            assert 0 < figure.low <= figure.value <= figure.high


def test_a_node_with_less_processor_time_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Quota("scaleproof-trial", 1, 0.1)
    trial.remove()
    if trial.why:
        pytest.skip(f"not runnable here: control groups cannot be made: {trial.why}")
    monkeypatch.setattr(sniffing, "PROGRAMS", Path(__file__).parent / "slowed")
    sniff = sniffed(tmp_path)
    named = slow(sniff)
    assert {slowness.who for slowness in named if slowness.kind.name in ("copied", "multiplied")} == {"n2"}, check(
        sniff
    ).message
    # Links without a rate are as fast as both their nodes' cores.
    assert {slowness.who for slowness in named} <= {"n1", "n2"}, check(sniff).message
    assert core_quota.leftovers("scaleproof-") == []


def test_a_node_on_a_slower_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "uneven.yaml").write_text(UNEVEN)
    sniff = sniffed(tmp_path, **{"fabric.cluster": str(tmp_path / "uneven.yaml")})
    assert {(slowness.who, slowness.kind.name) for slowness in slow(sniff)} >= {("n1", "rate")}
    assert {slowness.who for slowness in slow(sniff)} == {"n1"}, check(sniff).message


def test_a_test_that_cannot_be_made_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sniff.py").write_text("def run(context):\n    raise RuntimeError('no')\n")
    monkeypatch.setattr(sniffing, "PROGRAMS", tmp_path)
    result = sniffing.measured(sniffing.one_rank_each(2, fabric="netns"), NAMES[:2], tmp_path)
    assert isinstance(result, Sign) and "RuntimeError: no" in result.message
