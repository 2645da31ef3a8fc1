"""Tags of cases: every registered plugin has a value on the axes, and the report's rows carry the tags to filter by."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.record.table import TAG
from scaleproof.report.data import Run
from scaleproof.report.tags import axes, marks
from scaleproof.spec import registry
from scaleproof.spec.case import parse_case
from scaleproof.spec.suite import list_suites, load_suite
from scaleproof.spec.tags import AXES, NONE, tags_of

TRAIN = {
    "program": "train",
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "ranks": 4,
    "workload": "cd_dnn",
    "minibatch": 8,
    "steps": 2,
    "strategy": "sync",
}


def training(**fields: Any) -> dict[str, str]:
    return tags_of(parse_case({**TRAIN, "transport": "tcp", "collective": "ring", **fields}))


def test_every_transport_strategy_and_algorithm_has_its_tags() -> None:
    for name in registry.names("transport"):
        assert registry.get("transport", name).axis in AXES["transport"]
    for name in registry.names("collective"):
        collective = registry.get("collective", name)
        assert collective.exchange in AXES["parameter_exchange"] and collective.topology in AXES["topology"]
    for name in registry.names("strategy"):
        strategy = registry.get("strategy", name)
        assert (strategy.tags is not None) == strategy.communicates


def test_every_case_of_every_suite_has_one_known_value_on_every_axis() -> None:
    for folder in list_suites():
        suite = load_suite(folder)
        for experiment in suite.experiments.values():
            for size in experiment.sizes.values():
                for case in size.cases:
                    tags = tags_of(case)
                    assert list(tags) == list(AXES)
                    assert all(tag == NONE or tag in AXES[axis] for axis, tag in tags.items()), (case, tags)


def test_an_all_reduce_is_a_replicated_parameter_server_unless_its_algorithm_is_a_ring_or_a_tree() -> None:
    ring = training()
    assert (ring["parallelism"], ring["scheduling"], ring["parameter_exchange"], ring["topology"]) == (
        "DP",
        "synchronous",
        "all-reduce",
        "closed-ring",
    )
    assert training(collective="tree")["topology"] == "tree"
    assert training(transport="gloo", collective="native")["topology"] == "replicated-PS"


@pytest.mark.parametrize(
    ("servers", "topology", "exchange"),
    [
        (0, "distributed-PS(k=n)", "scatter-reduce"),
        (1, "single-PS", "reduce"),
        (2, "distributed-PS(k<n)", "scatter-reduce"),
    ],
)
def test_parameter_servers_differ_by_their_number(servers: int, topology: str, exchange: str) -> None:
    tags = training(strategy="parameter_server", **{"strategy.servers": servers})
    assert (tags["topology"], tags["parameter_exchange"]) == (topology, exchange)


def test_mechanisms_over_a_device_say_where_memory_lies_and_whether_it_is_copied() -> None:
    tags = training(strategy="parameter_server", transport="shm", **{"strategy.mechanism": "dynamic"})
    assert (tags["parameter_exchange"], tags["memory_placement"], tags["copy"]) == ("ad-hoc", "dynamic", "zero-copy")
    assert training(strategy="parameter_server")["copy"] == NONE


def test_without_an_exchange_only_what_is_there_is_tagged() -> None:
    alone = tags_of(parse_case({**TRAIN, "strategy": "local_only", "transport": None}))
    assert set(alone.values()) == {NONE}
    transfer = tags_of(
        parse_case(
            {"program": "transfer", "suite": "s", "experiment": "e", "arm": "a", "transport": "grpc", "sizes": [1]}
        )
    )
    assert {axis: tag for axis, tag in transfer.items() if tag != NONE} == {"transport": "gRPC"}


def test_an_own_program_says_its_scheme_by_an_option() -> None:
    own = {
        "program": "own",
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "ranks": 2,
        "entry": "x",
        "transport": "tcp",
        "options": {"scheme": "async_all_workers"},
    }
    tags = tags_of(parse_case(own))
    assert (tags["scheduling"], tags["consistency"], tags["topology"]) == (
        "asynchronous",
        "asynchronous",
        "single-PS",
    )


def test_a_page_offers_the_axes_on_which_its_rows_differ() -> None:
    rows = [Run({TAG + axis: tag for axis, tag in tags.items()}) for tags in (training(), training(collective="tree"))]
    assert axes(rows) == [
        ("parameter_exchange", ["binomial-tree", "all-reduce"]),
        ("topology", ["closed-ring", "tree"]),
    ]
    assert "topology=closed-ring" in marks(rows[0]).split() and "copy=n/a" not in marks(rows[0])
    assert marks(Run({})) == "" and axes([Run({}), rows[0]]) == []
