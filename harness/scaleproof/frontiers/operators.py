"""The operators of a network as a graph of costs: for every way to divide each of them among devices what it keeps in
the memory of a device, and how long it takes.

A layer with weights is divided by samples (data), by outputs (rows of its weight) and by inputs (columns), d x r x c
devices. Ranks that hold parts of the same sum add them up: outputs over c, gradients of inputs over r, gradients of
weights over d. Blocks of transformers are divided by heads or inner features, which takes a sum in either pass (Shoeybi
et al. 2019). Other layers compute where their inputs lie.

Memory of a device: its weights, their gradients and the optimiser's state, its part of the samples, outputs that the
backward pass needs, and copies of inputs that had to be moved; buffers are not reused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from scaleproof.frontiers.cost_graph import CostGraph, Costs
from scaleproof.frontiers.layout import Layout, missing_share
from scaleproof.workloads.layers import Concat, Conv, Linear
from scaleproof.workloads.networks import INPUT, Layer, Network
from scaleproof.workloads.sequence_layers import Embedding
from scaleproof.workloads.traced import Traced
from scaleproof.workloads.transformer_layers import Attention, FeedForward, LayerNorm, Transform, Unembedding

ITEM = 4
"""Bytes of a float32."""


@dataclass(frozen=True, slots=True)
class Machine:
    """`devices` equal devices, `per_server` of them in a server. Rates in FLOP/s; latency in s and time in s a byte,
    inside a server and between servers."""

    devices: int
    flops: float
    latency: float
    byte_s: float
    per_server: int = 0
    latency_between: float = 0.0
    byte_s_between: float = 0.0

    def _line(self, span: int) -> tuple[float, float]:
        """Of a group of devices that are at most so far apart."""
        if self.per_server and span > self.per_server:
            return self.latency_between, self.byte_s_between
        return self.latency, self.byte_s

    def all_reduce_s(self, nbytes: float, ranks: int, stride: int) -> float:
        """Among ranks that are `stride` devices apart: a ring."""
        if ranks < 2:
            return 0.0
        latency, byte_s = self._line(ranks * stride)
        return 2 * (ranks - 1) * (latency + byte_s * nbytes / ranks)

    def move_s(self, nbytes: float) -> float:
        """A device receives so much from others."""
        if not nbytes:
            return 0.0
        latency, byte_s = self._line(self.devices)
        return latency + byte_s * nbytes


@dataclass(frozen=True, slots=True)
class Way:
    """How an operator is divided: samples, outputs and inputs, in so many parts each."""

    data: int
    rows: int
    columns: int

    def __str__(self) -> str:
        return f"{self.data} x {self.rows} x {self.columns}"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of an operator in one way: `memory` in bytes of a device; `reads`, `writes`: layouts of its inputs and output."""

    memory: float
    time: float
    reads: Layout
    writes: Layout


def ways(layer: Layer, devices: int, batch: int) -> list[Way]:
    """All that divide samples, outputs and inputs evenly; at least one."""
    found = [
        Way(data, rows, devices // data // rows)
        for data in _divisors(devices)
        for rows in _divisors(devices // data)
        if batch % data == 0 and _divides(layer, rows, devices // data // rows)
    ]
    return found or [Way(1, 1, 1)]


def _divides(layer: Layer, rows: int, columns: int) -> bool:
    spec, outputs, inputs = layer.spec, layer.output_shape, layer.input_shape
    if isinstance(spec, Traced):  # what it computes is not known, but that rows of a matrix make its outputs
        features = outputs[0 if len(outputs) == 3 else -1]
        matrix = bool(layer.mac) and any(len(each.shape) > 1 and each.shape[0] == features for each in layer.variables)
        return columns == 1 and (rows == 1 or (matrix and features % rows == 0))
    if isinstance(spec, Attention):
        return columns == 1 and spec.heads % rows == 0
    if isinstance(spec, FeedForward):
        return columns == 1 and spec.factor * outputs[-1] % rows == 0
    if isinstance(spec, Conv | Linear | Transform | Unembedding):
        channel = 0 if isinstance(spec, Conv) else -1
        whole = prod(inputs) if isinstance(spec, Linear) and not spec.each else inputs[channel]
        return outputs[channel] % rows == 0 and whole % columns == 0
    if isinstance(spec, Embedding):
        return columns == 1 and outputs[-1] % rows == 0
    if isinstance(spec, LayerNorm | Concat):  # needs all features; what is left over computes copies
        return columns == 1
    return columns == 1 and (outputs[0 if len(outputs) == 3 else -1] % rows == 0)


@lru_cache
def _divisors(count: int) -> tuple[int, ...]:
    return tuple(each for each in range(1, count + 1) if count % each == 0)


def cost_of(layer: Layer, way: Way, batch: int, machine: Machine, states: int) -> Cost:
    """`states`: copies of the weights that a device keeps, with their gradients and the optimiser's."""
    weights = ITEM * sum(variable.elements for variable in layer.variables)
    samples, read, written = batch / way.data, ITEM * prod(layer.input_shape), ITEM * prod(layer.output_shape)
    first = layer.inputs == (INPUT,)  # needs no gradient of its input, which nobody else keeps
    compute = 2 * (3 * layer.mac - first * layer.input_mac) * batch / machine.flops
    if isinstance(layer.spec, Attention | FeedForward):
        reads = writes = Layout(way.data)
        kept, share = samples * written, way.rows
        summed = machine.all_reduce_s(samples * written, way.rows, 1)
        summed += machine.all_reduce_s(samples * read, way.rows, 1)
    elif isinstance(layer.spec, LayerNorm | Concat):
        reads = writes = Layout(way.data)
        kept, share, summed = samples * written, 1, 0.0
        compute *= way.rows
    else:
        reads, writes = Layout(way.data, way.columns), Layout(way.data, way.rows, way.columns)
        if not layer.mac:
            reads = writes
        kept, share = samples * written / way.rows, way.rows * way.columns
        summed = machine.all_reduce_s(samples * written / way.rows, way.columns, 1)
        if layer.mac and not first:
            summed += machine.all_reduce_s(samples * read / way.columns, way.rows, way.columns)
    gradients = machine.all_reduce_s(weights / share, way.data, machine.devices // way.data)
    if first:
        kept += samples * read / reads.features
    used = way.data * way.rows * way.columns
    return Cost(states * weights / share + kept, compute / used + summed + gradients, reads, writes)


def moved(nbytes: float, have: Layout, want: Layout, machine: Machine) -> tuple[float, float]:
    """Memory and time of bringing an output of so many bytes into another layout, and its gradient back."""
    if have == want:
        return 0.0, 0.0
    there = missing_share(have, want, machine.devices)
    back = missing_share(want, have, machine.devices)
    return (nbytes / want.parts if there else 0.0), machine.move_s(nbytes * there) + machine.move_s(nbytes * back)


@dataclass(frozen=True)
class Divided:
    """A network's graph of costs, and the ways that configurations stand for."""

    graph: CostGraph
    ways: dict[str, list[Way]]


def divided(network: Network, batch: int, machine: Machine, states: int = 3) -> Divided:
    """All ways to train a network with so many samples a step on a machine."""
    by_name = {layer.name: layer for layer in network.layers}
    chosen = {layer.name: ways(layer, machine.devices, batch) for layer in network.layers}
    costs = {
        name: [cost_of(by_name[name], way, batch, machine, states) for way in ways_of]
        for name, ways_of in chosen.items()
    }
    operators = {
        name: Costs(np.array([each.memory for each in of]), np.array([each.time for each in of]))
        for name, of in costs.items()
    }
    edges = {}
    for one, other in _edges(network):
        nbytes = float(ITEM * batch * prod(by_name[one].output_shape))
        cells = [[moved(nbytes, a.writes, b.reads, machine) for b in costs[other]] for a in costs[one]]
        both = np.array(cells)
        edges[one, other] = Costs(both[:, :, 0], both[:, :, 1])
    return Divided(CostGraph(operators, edges), chosen)


def _edges(network: Network) -> Iterator[tuple[str, str]]:
    for layer in network.layers:
        for name in dict.fromkeys(layer.inputs):
            if name != INPUT:
                yield name, layer.name
