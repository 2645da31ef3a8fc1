"""Costs of dividing a network's operators: what follows from sizes, and how frontiers change with devices."""

from __future__ import annotations

import numpy as np
import pytest

from scaleproof.frontiers.cost_graph import frontier_of
from scaleproof.frontiers.layout import Layout, missing_share
from scaleproof.frontiers.operators import ITEM, Machine, Way, divided
from scaleproof.spec import registry
from scaleproof.workloads.networks import Network


def network(name: str) -> Network:
    found: Network = registry.load("workload", name)(None, 1.0)
    return found


def machine(devices: int, byte_s: float = 1e-9, latency: float = 1e-5) -> Machine:
    return Machine(devices, 1e12, latency, byte_s)


def test_data_parallel_training_keeps_all_weights_and_adds_up_all_gradients() -> None:
    whole, batch = network("dnn_digits"), 64
    made = divided(whole, batch, machine(4, latency=0.0))
    choices = {name: ways.index(Way(4, 1, 1)) for name, ways in made.ways.items()}
    memory, time = made.graph.cost(choices)
    outputs = sum(int(np.prod(layer.output_shape)) for layer in whole.layers)
    assert memory == 3 * ITEM * whole.parameters + ITEM * batch / 4 * (outputs + int(np.prod(whole.input_shape)))
    flops = whole.train_flop * batch
    assert time == pytest.approx(flops / 4 / 1e12 + 2 * 3 / 4 * ITEM * whole.parameters * 1e-9)


def test_a_part_that_is_there_is_not_moved() -> None:
    assert missing_share(Layout(4), Layout(4), 4) == 0
    assert missing_share(Layout(), Layout(4), 4) == 0, "all have everything"
    assert missing_share(Layout(4), Layout(), 4) == 0.75
    assert missing_share(Layout(features=2), Layout(features=4), 4) == pytest.approx(0.25)
    assert missing_share(Layout(features=2, stride=2), Layout(features=4), 4) == 0, "each has a part of its half"
    assert missing_share(Layout(2, 2), Layout(4), 4) == pytest.approx(0.125)


def test_one_device_has_one_strategy() -> None:
    assert len(frontier_of(divided(network("vgg_a"), 32, machine(1)).graph)) == 1


@pytest.mark.parametrize("name", ["vgg_a", "small_gpt", "dnn_digits"])
def test_more_devices_need_less_memory_each_and_less_time_where_messages_are_fast(name: str) -> None:
    least, fastest = [], []
    for devices in (1, 2, 4, 8):
        graph = divided(network(name), 64, machine(devices, byte_s=1e-13, latency=0.0)).graph
        found = frontier_of(graph, error=0.01)
        least.append(float(found.memory[0]))
        fastest.append(float(found.time[-1]))
    assert least == sorted(least, reverse=True) and len(set(least)) == 4
    assert fastest == sorted(fastest, reverse=True)


def test_without_communication_the_fastest_strategy_leaves_no_device_idle() -> None:
    made = divided(network("vgg_a"), 64, machine(8, byte_s=0.0, latency=0.0))
    found = frontier_of(made.graph)
    flops = network("vgg_a").train_flop * 64
    assert found.time[-1] == pytest.approx(flops / 8 / 1e12)


def test_strategies_differ_along_the_frontier() -> None:
    made = divided(network("vgg_a"), 64, machine(8))
    found = frontier_of(made.graph, error=0.01)
    assert len(found) > 3
    first, last = (
        {name: str(made.ways[name][number]) for name, number in found.choices(point).items()}
        for point in (0, len(found) - 1)
    )
    assert first != last
