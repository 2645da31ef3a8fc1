"""Counters of our own code behind checks: each is compared with what a small run must count."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.core.context import RankContext
from scaleproof.core.record_schema import Record
from scaleproof.programs.own import load_entry
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.remote import graph_analyser
from scaleproof.spec import registry
from scaleproof.strategies.hybrid import Hybrid
from tests.short_form import case_from
from tests.unit.claims.claims_samples import TRAIN, record, samples

SUITES = Path(__file__).parents[3] / "suites"
ITERATIONS = 3


def value(name: str, measured: Any) -> float | None:
    """A suite's metric of one launch."""
    suite, _, metric = name.partition(".")
    launch = suite_metrics(SUITES / suite)[metric].launch
    assert launch is not None
    return launch(measured, samples())


@pytest.mark.parametrize(("cached", "fresh", "expected"), [(0, 0, 1.0), (1, 0, 0.0), (1, 1, 1.0)])
def test_queries_per_message_are_those_of_the_driver_over_all_messages_of_a_ring(
    cached: int, fresh: int, expected: float
) -> None:
    """Two ranks send and receive two messages each in an all-reduce."""
    program = load_entry(SUITES / "awan2019" / "programs", "pointer_cache")
    options = {"driver": "emulated", "query_us": 0, "cached": cached, "fresh": fresh}
    base = {"suite": "awan2019", "experiment": "e", "arm": "a", "program": "own", "entry": "pointer_cache", "ranks": 2}
    run = {"transport": "tcp", "collective": "ring", "sizes": [4096], "iterations": ITERATIONS, "warmup": 1}

    def body(context: RankContext) -> None:
        program.run(context)
        counts = context.facts["pointer_cache"]["sizes"]["4096"]
        found = value("awan2019.queries_per_message", SimpleNamespace(ranks=[SimpleNamespace(facts=context.facts)]))
        assert (found, counts["messages"]) == (expected, 4 * ITERATIONS)

    assert run_ranks(case_from({**base, **run, "options": options}), body) == ["", ""]


def test_hybrid_bytes_are_those_of_the_rank_that_sent_most_over_its_formula() -> None:
    made: Record = record({**TRAIN, "ranks": 2})
    for status, strips in zip(made.ranks, (900, 1100), strict=True):
        status.facts["hybrid"] = {
            "sent": {"activations": 1000, "strips": strips, "replicated": 100},
            "formula": {"activations": 1000.0, "strips": 1000.0},
        }
    assert value("das2016.hybrid_bytes_ratio", made) == pytest.approx(2200 / 2000)
    assert value("das2016.hybrid_bytes_ratio", record({**TRAIN, "ranks": 2})) is None, "without the counter"


def test_hybrid_counts_bytes_within_groups_between_them_and_of_all_ranks() -> None:
    def counted(nbytes: int) -> Any:
        return SimpleNamespace(traffic=SimpleNamespace(nbytes=nbytes))

    strategy: Any = SimpleNamespace(
        group=counted(1000), division=SimpleNamespace(together=counted(300), across=counted(500))
    )
    assert Hybrid._sent(strategy) == {"activations": 300, "strips": 500, "replicated": 200}


@pytest.mark.parametrize("dynamic", [0, 1])
def test_the_share_of_static_edges_is_what_the_analyser_decides_of_weights_and_gradients(
    dynamic: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, decide = load_entry(SUITES / "xue2019" / "programs", "births"), graph_analyser.decide

    def with_dynamic(tensors: Any) -> Any:
        weights = [tensor.name for tensor in tensors if tensor.name.endswith(".weight")]
        return decide(tensors, dict.fromkeys(weights[:dynamic], "dynamic"))

    monkeypatch.setattr(graph_analyser, "decide", with_dynamic)
    context: Any = SimpleNamespace(case=SimpleNamespace(threads_per_rank=1), seed=0, facts={})
    worker = program._Worker(context, registry.load("workload", "fcn5")(None, 0.01))
    worker.edges(batch=2)
    edges = 2 * len(list(worker.module.parameters()))
    share = value("xue2019.static_edges_share", SimpleNamespace(ranks=[SimpleNamespace(facts=context.facts)]))
    assert share == pytest.approx((edges - dynamic) / edges)
