"""Volumes of hybrid parallelism against the published formulas computed by hand, and the divisible part of a
network."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.registry import load
from scaleproof.strategies.affinity import neighbours, split_cores
from scaleproof.workloads.case_network import check_workload
from scaleproof.workloads.layers import Linear
from scaleproof.workloads.networks import Network, build
from scaleproof.workloads.strips import strip_bounds, tail
from scaleproof.workloads.volumes import best_groups, closed_form_groups, formula_groups, volume, volumes
from tests.short_form import case_from

MB = 1e6
CASE: dict[str, Any] = {
    "suite": "t",
    "experiment": "t",
    "arm": "t",
    "program": "train",
    "strategy": "hybrid",
    "transport": "tcp",
    "collective": "ring",
    "ranks": 4,
    "workload": "dnn_digits",
    "minibatch": 64,
    "steps": 1,
}
# One layer: inputs, outputs, nodes, minibatch; G*; MB per node by the paper's formulas at the numbers of groups named
# (das2016, overlap 0).
LAYERS = {
    "VGG fc6": (25088, 4096, 64, 256, 2.00, {1: 51.4, 2: 51.4, 4: 64.2, 8: 109, 16: 209, 64: 822}),
    "VGG fc7": (4096, 4096, 64, 256, 2.00, {1: 8.39, 2: 8.39, 4: 10.5, 8: 17.8, 16: 34.1, 64: 134}),
    "VGG fc7 at 128": (4096, 4096, 128, 512, 4.00, {1: 16.8, 2: 10.5, 4: 8.39, 8: 10.5, 16: 17.8, 128: 134}),
    "OverFeat fc6": (36864, 3072, 64, 256, 2.31, {1: 75.5, 2: 66.1, 4: 75.5, 8: 123, 16: 231, 64: 906}),
    "CD-DNN hidden": (2048, 2048, 16, 1024, 2.83, {1: 16.8, 2: 12.6, 4: 12.6, 8: 18.9, 16: 33.6}),
    "CD-DNN hidden at 256": (2048, 2048, 16, 256, 1.41, {1: 4.19, 2: 6.29, 4: 9.44, 8: 17.3, 16: 33.6}),
    "CD-DNN out": (2048, 9304, 16, 1024, 1.33, {1: 16.8, 2: 27.4, 4: 42.3, 8: 78.3, 16: 152}),
}


def one_layer(inputs: int, outputs: int) -> Network:
    return build("one", (inputs,), (Linear("fc", outputs, classifier=True),), 1.0)


@pytest.mark.parametrize("name", LAYERS)
def test_volumes_of_one_layer_are_those_of_the_formulas(name: str) -> None:
    inputs, outputs, nodes, minibatch, optimum, table = LAYERS[name]
    network = one_layer(inputs, outputs)
    assert closed_form_groups(network, nodes, minibatch) == pytest.approx(optimum, abs=0.005)
    for groups, expected in table.items():
        volumes = volume(network, nodes, minibatch, groups)
        assert (volumes.comm_model + volumes.comm_data) / MB == pytest.approx(expected, rel=0.006)


def test_the_closed_form_misses_a_minimum_at_the_ends_of_the_range() -> None:
    """das2016: hidden layers of CD-DNN at minibatch 256: G* is 1.41, yet 2 groups send half more than one."""
    network = one_layer(2048, 2048)
    assert best_groups(network, 16, 256) == 1 and round(closed_form_groups(network, 16, 256), 2) == 1.41
    assert best_groups(load("workload", "vgg_a")(None, 1.0), 64, 256) == 2
    dnn = load("workload", "cd_dnn")(None, 1.0)
    assert (formula_groups(dnn, 8, 1024), best_groups(dnn, 8, 1024)) == (1, 2), (
        "what a ring sends is less than the volumes, most so at 2 groups"
    )
    assert [volume.groups for volume in volumes(network, 12, 24)] == [1, 2, 3, 4, 6, 12]


@pytest.mark.parametrize(
    ("workload", "first"), [("vgg_a", "fc6"), ("cd_dnn", "h1"), ("resnet50", "fc"), ("cnn_digits", "fc3")]
)
def test_the_fully_connected_end_of_a_network_is_divided(workload: str, first: str) -> None:
    network = load("workload", workload)(None, 1.0)
    layers = tail(network)
    assert layers[-1] is network.layers[-1]
    assert layers[0].name == first


def test_strips_cover_all_features_and_differ_by_at_most_one() -> None:
    for features in range(4, 40):
        for parts in range(1, 5):
            bounds = strip_bounds(features, parts)
            widths = {stop - start for start, stop in zip(bounds, bounds[1:], strict=False)}
            assert bounds[0] == 0 and bounds[-1] == features and min(widths) >= 1 and max(widths) - min(widths) <= 1


def case(**fields: Any) -> TrainCase:
    parsed = case_from(CASE | fields)
    assert isinstance(parsed, TrainCase)
    return parsed


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"strategy.groups": 3}, "3 groups do not divide 4 ranks"),
        ({"transport": "gloo", "collective": "native"}, "an algorithm .ring, .... over a transport's sends"),
        ({"transport": "horovod", "collective": "native"}, "an algorithm .ring, .... over a transport's sends"),
        ({"framework": "tensorflow"}, "steps parts of parameters where they lie"),
        ({"compute": "none"}, "exchanges activations within the passes"),
        (
            {
                "strategy": "sync_overlap",
                "transport": "horovod",
                "collective": "native",
                "transport.fusion_mib": 1,
                "strategy.communication": "main",
            },
            "moves them with its own",
        ),
        (
            {
                "strategy": "distributed_update",
                "transport": "horovod",
                "collective": "native",
                "transport.fusion_mib": 1,
            },
            "nothing is left to fuse",
        ),
    ],
)
def test_impossible_strategies_are_a_one_line_error(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        case(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"ranks": 16, "strategy.groups": 1},
            "layer 'out' of 'dnn_digits' has 10 features for the 16 ranks of a group; give more groups",
        ),
        ({"workload": "seq2seq", "workload.data": "reversal"}, "no fully connected layers at its end"),
        ({"workload": "inception_v3"}, "an auxiliary head"),
    ],
)
def test_networks_that_cannot_be_divided_are_refused_before_any_process_starts(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        check_workload(case(**fields))


def test_a_core_is_the_communication_threads_where_every_rank_can_spare_one() -> None:
    assert split_cores(0, 2, 1, [0, 1]) is None
    first, second = split_cores(0, 2, 1, [0, 1, 2, 3]), split_cores(1, 2, 1, [0, 1, 2, 3])
    assert first is not None and second is not None
    assert (first.compute, first.communication, second.compute, second.communication) == ((0,), (1,), (2,), (3,))
    wide = split_cores(1, 2, 2, [7, 8, 9, 1, 2, 3, 4])
    assert wide is not None and (wide.compute, wide.communication) == ((4, 7), (8,))
    two = split_cores(1, 2, 1, [0, 1, 2, 3, 4, 5], channels=2)
    assert two is not None and (two.compute, two.communication) == ((3,), (4, 5))
    assert split_cores(1, 2, 1, [0, 1, 2, 3], channels=2) is None
    assert neighbours(case(ranks=4, groups=2), 3) == [0, 1, 2, 3]
    assert neighbours(case(ranks=4, groups=2, fabric="guests", nodes=2, transport="tcp"), 3) == [2, 3]
