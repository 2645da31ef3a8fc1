"""Metrics of this paper only: its balance equations, which say how many samples ("points") a node needs to hide the
exchange of its convolutions.

Per node and step, for a layer of `weights` weights and MB points (docs/metrics/flop_per_byte.md has the derivation):
    compute = 3 * 2 * weights * out_w * out_h * MB          FLOP: forward, input gradient, weight gradient
    exchange = 4 * weights * (2 - overlap)                  bytes: send the partial gradient, receive the new weights
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from scaleproof.claims.arithmetic import Published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_wire import link_bytes
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase
from scaleproof.workloads.networks import INPUT, Layer, Network
from scaleproof.workloads.volumes import closed_form_groups, volume

from .arguments import (
    ConvolutionsAtPoints,
    ConvolutionsOn,
    ConvolutionsSpread,
    DividedLayer,
    Machine,
    OfSpeedup,
    OnNodes,
    conv_layers,
    fully_connected,
)
from .made_up import made_up, made_up_choice

FLOAT = 4
"""Bytes of a float32."""
PASSES = 3
"""Forward, gradient of the inputs, gradient of the weights: each costs the same."""
AVX2_FLOP_PER_CYCLE = 32
"""Two fused multiply-adds of 8 floats a cycle and core (Haswell)."""


def compute_flop(layer: Layer, points: int) -> int:
    """FLOP of a training step of a layer on `points` data points."""
    return PASSES * 2 * layer.mac * points


def exchange_nbytes(layer: Layer, overlap: float) -> float:
    """Bytes that a node sends and receives for a layer; `overlap` in [0, 1] is the share of receiving that hides behind
    sending."""
    return FLOAT * layer.weights * (2 - overlap)


def conv_flop_per_byte(workload: str, points: int, overlap: float) -> float:
    """FLOP per exchanged byte over all convolutions together."""
    layers = conv_layers(workload)
    return sum(compute_flop(layer, points) for layer in layers) / sum(
        exchange_nbytes(layer, overlap) for layer in layers
    )


def machine_balance(machine: Machine) -> float:
    """Peak FLOP per network byte of a node: cores, GHz, and GB/s of its link."""
    return machine.cores * machine.ghz * AVX2_FLOP_PER_CYCLE / machine.gigabytes_per_s


def flop_per_byte(x: ConvolutionsAtPoints, rows: Published) -> float:
    """Arithmetic of the convolutions per byte that a node exchanges.

        compute       = 3 x 2 x weights x out_w x out_h x MB     FLOP per step and node
        exchange      = 4 x weights x (2 - overlap)              bytes per step and node
        flop_per_byte = sum of compute / sum of exchange         over the conv layers

    Forward pass, input gradient and weight gradient cost the same. `overlap` in [0, 1] is the share of receiving new
    weights that hides behind sending gradients. Per layer the weights cancel:

        1.5 x out_w x out_h x MB at overlap 1,   0.75 x out_w x out_h x MB at overlap 0

    Kernel size, feature counts and stride therefore do not matter, and a fully connected layer (1x1 output) has 1.5 MB.
    Over all conv layers at MB 1, overlap 1: VGG-A 1218.1, OverFeat-FAST 250.7. Source: das2016, balance equations;
    layer shapes: harness/scaleproof/workloads/. Arithmetic, no launches. The row's `x` has workload, points (MB) and
    overlap.
    """
    return conv_flop_per_byte(x.workload, x.points, x.overlap)


def machine_flop_per_byte(x: Machine, rows: Published) -> float:
    """Peak arithmetic of a node per byte of its network.

        machine_flop_per_byte = cores x GHz x 32 FLOP per cycle / GB/s of the link

    The peak is that of AVX2 with two fused multiply-adds of 8 floats a cycle. Real code reaches half to two thirds of
    the peak, so the true balance is lower. Arithmetic, no launches. The row's `x` has cores, ghz and gigabytes_per_s.
    """
    return machine_balance(x)


def min_points_per_node(x: ConvolutionsOn, rows: Published) -> float:
    """Fewest data points that a node must compute on per step to hide the exchange of its conv layers.

        min_points_per_node = ceil( machine_flop_per_byte / flop_per_byte at 1 point )

    Fully connected layers are left out: plain data parallelism cannot hide their exchange at small minibatches. See
    [machine_flop_per_byte](machine_flop_per_byte.md) and [flop_per_byte](flop_per_byte.md). Source: das2016.
    Arithmetic, no launches. The row's `x` has workload, overlap and machine.
    """
    return math.ceil(machine_balance(x.machine) / conv_flop_per_byte(x.workload, 1, x.overlap))


def max_nodes(x: ConvolutionsSpread, rows: Published) -> float:
    """Most nodes over which a minibatch can be spread with the conv exchange hidden.

        max_nodes = floor( minibatch / min_points_per_node )

    See [min_points_per_node](min_points_per_node.md). Arithmetic, no launches. The row's `x` has workload, overlap,
    machine and minibatch.
    """
    return x.minibatch // min_points_per_node(x, rows)


def hybrid_nbytes(layer: Layer, nodes: int, minibatch: int, groups: int) -> float:
    """Bytes that a node exchanges in a step for a fully connected layer in `groups` groups, by the paper's two volumes
    (workloads/volumes.py)."""
    nbytes = volume(_alone(layer), nodes, minibatch, groups)
    return nbytes.comm_model + nbytes.comm_data


def fewest(layer: Layer, nodes: int, minibatch: int) -> int:
    """The divisor of the nodes with the fewest bytes by `hybrid_nbytes`; the smaller of two equal ones."""
    return min(_divisors(nodes), key=lambda groups: (hybrid_nbytes(layer, nodes, minibatch, groups), groups))


def layer_of(x: DividedLayer) -> Layer:
    """The layer that `x` names by workload and layer."""
    return fully_connected(x.workload)[x.layer]


def _alone(layer: Layer) -> Network:
    return Network(layer.name, layer.input_shape, (replace(layer, inputs=(INPUT,)),))


def _divisors(nodes: int) -> list[int]:
    return [groups for groups in range(1, nodes + 1) if nodes % groups == 0]


def hybrid_groups(x: DividedLayer, rows: Published) -> float:
    """Number of groups of nodes with which a fully connected layer exchanges the fewest bytes.

    hybrid_groups = the divisor G of N nodes with the least comm_model(G) + comm_data(G)

    These are das2016's volumes of a fully connected layer with ifm inputs and ofm outputs at minibatch MB, in float32.
    They assume that a node does not receive while it sends:

        comm_model = 2 x 4 x ifm x MB / G            0 at G = N
        comm_data  = 2 x 4 x ifm x ofm x G / N       0 at G = 1

    If two divisors have equal volumes, the smaller one is taken. Arithmetic, no launches.
    [strategies](../strategies.md) describes what strategy hybrid decides for a whole network. The row's `x` has
    workload, layer, nodes and minibatch.
    """
    return fewest(layer_of(x), x.nodes, x.minibatch)


def hybrid_groups_closed(x: DividedLayer, rows: Published) -> float:
    """Number of groups by the closed form.

    hybrid_groups_closed = sqrt(N x MB / ofm)

    At this G the derivative of the sum of both volumes of [hybrid_groups](hybrid_groups.md) is zero. The closed form
    ignores that G must divide N, and that one volume vanishes at either end. Below about 2, pure model parallelism is
    better.
    """
    return closed_form_groups(_alone(layer_of(x)), x.nodes, x.minibatch)


def closed_form_excess(x: DividedLayer, rows: Published) -> float:
    """Share by which the divisor nearest to the closed form sends more than the best divisor.

    closed_form_excess = volume at the divisor nearest to the closed form / least volume over divisors - 1

    The nearest divisor is the nearest by ratio. See [hybrid_groups](hybrid_groups.md) and
    [hybrid_groups_closed](hybrid_groups_closed.md).
    """
    layer, nodes, minibatch = layer_of(x), x.nodes, x.minibatch
    optimum = closed_form_groups(_alone(layer), nodes, minibatch)
    nearest = min(_divisors(nodes), key=lambda groups: abs(math.log(groups / optimum)))
    return (
        hybrid_nbytes(layer, nodes, minibatch, nearest)
        / hybrid_nbytes(layer, nodes, minibatch, fewest(layer, nodes, minibatch))
        - 1
    )


def published_efficiency(x: OfSpeedup, rows: Published) -> float:
    """Efficiency of a published speed-up.

    published_efficiency = published speed-up / its number of nodes

    Arithmetic on a published row, not a measurement. It checks that our table of the paper agrees with itself. For
    measured launches see [parallel_efficiency](parallel_efficiency.md).
    """
    return rows.number(x.speedup) / rows.conditions(x.speedup, OnNodes).nodes


def _sent(record: Record) -> list[tuple[float, float]]:
    """For each rank of strategy hybrid: the bytes that its last step sent, and the bytes that the formulas predict.
    Tensors that were shrunk count in full."""
    facts = [status.facts["hybrid"] for status in record.ranks if "sent" in status.facts.get("hybrid", {})]
    scale = record.case.shrink if not record.case.plugin("fabric").predicted else 1.0
    return [(scale * sum(fact["sent"].values()), sum(fact["formula"].values())) for fact in facts]


def hybrid_bytes_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes that the busiest rank was asked to send over the bytes that the formulas of strategy `hybrid` predict.

    ratio = bytes that the busiest rank was asked to send in the last step / (comm_model (P-1)/P + comm_data (G-1)/G +
    logits, labels and biases + 2V(N-1)/N of all other parameters)

    There are N ranks in G groups of P = N/G. comm_model = 8 ifm MB/G and comm_data = 8 ifm ofm G/N, summed over the
    divided layers ([strategies](../strategies.md#hybrid-parallelism)). Our own transport counts the bytes; what
    interfaces counted is in [hybrid_wire_ratio](hybrid_wire_ratio.md). Tensors that were shrunk count in full. Buckets
    are padded to equal parts and to 64 bytes, which makes the ratio a little more than 1. Replayed launches do not send
    labels, which are 8 bytes a point. Source: das2016, hybrid parallelism.

    A value of 1 means that the schedule is that of the formulas.
    """
    sent_by_rank = _sent(record)
    sent, predicted = max(sent_by_rank, default=(0.0, 0.0))
    return sent / predicted if predicted else None


def hybrid_wire_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes on the busiest node's link over the bytes that the formulas of strategy `hybrid` predict.

    ratio = bytes that the interfaces of the busiest node counted in the timed steps / (steps x bytes by formula of a
    step)

    The formulas are those of [hybrid_bytes_ratio](hybrid_bytes_ratio.md), the bytes those of
    [wire_bytes_ratio](wire_bytes_ratio.md): the kernel counts them, with headers, which are up to a tenth. The value
    exists where each rank has a node of its own. Source: das2016, hybrid parallelism.

    Between 1 and 1.1 the formulas hold.
    """
    predicted = max((predicted for _, predicted in _sent(record)), default=0.0)
    counted = _counted_per_step(record)
    return counted / predicted if counted and predicted else None


def fewest_bytes_ratio(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Bytes on the busiest node's link under the chosen number of groups, over the fewest bytes under any other number
    of groups.

    ratio = bytes of a step that the interfaces of the busiest node counted with `groups: 0` / the least of them over
    the other numbers of groups that cases set, in one repetition

    With `groups: 0`, strategy `hybrid` chooses the divisor of the ranks for which its formulas predict the fewest
    bytes. The bytes are those of [hybrid_wire_ratio](hybrid_wire_ratio.md). Launches of one network, width, minibatch
    and number of ranks are compared, and cases that set the chosen number are left out. If there are several networks,
    the largest ratio counts. Source: das2016, hybrid parallelism.

    It is below 1 when the choice is right.
    """
    by_network: dict[tuple[object, ...], dict[int, float]] = {}
    chosen: dict[tuple[object, ...], int] = {}
    for launch in block:
        case, counted = launch.record.case, _counted_per_step(launch.record)
        if isinstance(case, TrainCase) and counted and _sent(launch.record):
            network = (case.workload, case.workload_options.width, case.ranks, case.minibatch)
            by_network.setdefault(network, {})[case.value("strategy.groups", 0)] = counted
            if not case.value("strategy.groups", 0):
                chosen[network] = launch.record.ranks[0].facts["hybrid"]["groups"]
    ratios = [
        by_network[network][0] / min(others)
        for network, best in chosen.items()
        if (others := [nbytes for groups, nbytes in by_network[network].items() if groups not in (0, best)])
    ]
    return max(ratios, default=None)


def _counted_per_step(record: Record) -> float | None:
    """Bytes of a timed step that the interfaces of the busiest node counted."""
    counted = link_bytes(record)
    return max(counted.values()) / record.case.steps if counted and isinstance(record.case, TrainCase) else None


METRICS = [
    Metric("hybrid_bytes_ratio", "1", None, launch=hybrid_bytes_ratio, own_count=True, made_up=made_up),
    Metric("hybrid_wire_ratio", "1", None, launch=hybrid_wire_ratio, made_up=made_up),
    Metric("fewest_bytes_ratio", "1", "lower", block=fewest_bytes_ratio, made_up=made_up_choice),
    Metric("flop_per_byte", "flop/byte", None, model=flop_per_byte, x=ConvolutionsAtPoints),
    Metric("machine_flop_per_byte", "flop/byte", None, model=machine_flop_per_byte, x=Machine),
    Metric("min_points_per_node", "points/node", "lower", model=min_points_per_node, x=ConvolutionsOn),
    Metric("max_nodes", "nodes", "higher", model=max_nodes, x=ConvolutionsSpread),
    Metric("hybrid_groups", "groups", None, model=hybrid_groups, x=DividedLayer),
    Metric("hybrid_groups_closed", "groups", None, model=hybrid_groups_closed, x=DividedLayer),
    Metric("closed_form_excess", "fraction", "lower", model=closed_form_excess, x=DividedLayer),
    Metric("published_efficiency", "fraction", "higher", model=published_efficiency, x=OfSpeedup),
]
