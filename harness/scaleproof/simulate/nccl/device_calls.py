"""Calls of a transport whose own collectives run between GPUs, in a simulated training on a node type with GPUs: the
model of NCCL says how long each takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from scaleproof.rank_programs import effects
from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_exchange import Exchange
from scaleproof.simulate.collective_schedules import Pattern
from scaleproof.simulate.cost_model import CostModel, DeviceModel, MessageCosts
from scaleproof.simulate.device_costs import DeviceCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.nccl.constants import Algorithm, Protocol
from scaleproof.simulate.nccl.prediction import Collective, Way, channels_of, predict
from scaleproof.simulate.program import exchange_plan, step_program
from scaleproof.simulate.uncertain import Uncertain
from scaleproof.spec.case import AnyCase, Operation, TrainCase
from scaleproof.spec.cluster import Cluster, cluster_of, node_name
from scaleproof.spec.common_case import NATIVE
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import GpuNode, gpu_nodes
from scaleproof.strategies.step_program import collectives, listed
from scaleproof.workloads.networks import Network as LayerTable

IN_NCCL: dict[Operation, Collective] = {
    "all_reduce": "allreduce",
    "reduce_scatter": "reducescatter",
    "all_gather": "allgather",
    "broadcast": "broadcast",
}
LARGE_NBYTES = 64 << 20
UNCERTAINTY = DeviceModel(
    small=Uncertain("the model of NCCL, below 64 MiB", 1.0, 1 / 2, 2.0),
    large=Uncertain("the model of NCCL, from 64 MiB", 1.0, 1 / 1.4, 1.4),
    large_nbytes=LARGE_NBYTES,
)
"""Bounds within which suite gpu_collectives accepts a row: a factor of 2, from 64 MiB on 40 %. Chosen by us."""


@dataclass(frozen=True)
class Devices:
    """Equal nodes with GPUs. `node` has those GPUs only that hold a rank, and the network of the case's cluster."""

    node: GpuNode
    nodes: int

    def way(self, operation: Operation, nbytes: float) -> Way:
        """How NCCL makes a call over all ranks; `nbytes`: of the whole array."""
        return _way(self, operation, max(round(nbytes), 1))

    def __hash__(self) -> int:
        return hash((self.node.summary, self.node.gpus, self.node.network_gbit, self.nodes))


@cache
def _way(devices: Devices, operation: Operation, nbytes: int) -> Way:
    return predict(devices.node, IN_NCCL[operation], devices.nodes, nbytes)


def devices_of(case: AnyCase, cluster: Cluster | None = None) -> Devices | None:
    """The nodes of a case whose calls the model of NCCL predicts; None for any other case. Raises SpecError for ranks
    that its node type cannot hold. `cluster`: in place of the case's."""
    name = case.value("compute.profile")
    if not isinstance(case, TrainCase) or case.transport is None or not is_modelled(name):
        return None
    strategy = case.plugin("strategy")
    if not case.plugin("transport").calls_between_gpus or case.collective != NATIVE:
        return None
    if strategy.has_servers or strategy.divides_layers:
        return None
    if case.value("compute.others") is not None:
        raise SpecError("compute.others: the model of NCCL knows equal nodes only; take another transport")
    node, ranks = gpu_nodes()[name], ranks_a_node(case)
    if case.nodes > 1:
        gbit = _network_gbit(cluster or cluster_of(case), node)
        if gbit is None:
            raise SpecError(f"node type {name!r} has no network_gbit, and the case's links no rate: set link_mbit")
        node = node.model_copy(update={"network_gbit": gbit})
    return Devices(with_gpus(name, node, ranks), case.nodes)


def is_modelled(name: str | None) -> bool:
    """Whether the model of NCCL knows the GPUs and links of a node type."""
    return name in gpu_nodes() and gpu_nodes()[name].architecture is not None


def ranks_a_node(case: AnyCase) -> int:
    """Ranks of each node of a case on a node type with GPUs, of which each has one. Raises SpecError where they do not
    fit."""
    name = case.value("compute.profile")
    ranks, rest = divmod(case.ranks, case.nodes)
    if rest:
        raise SpecError(f"{case.ranks} ranks on {case.nodes} nodes of type {name!r}: give every node as many")
    if ranks > gpu_nodes()[name].gpus:
        raise SpecError(f"{ranks} ranks on a node of type {name!r}, which has {gpu_nodes()[name].gpus} GPUs")
    return ranks


def _network_gbit(cluster: Cluster, node: GpuNode) -> float | None:
    """Of all links of a node; the slowest node counts. Where they have no limit, the cards' own rate."""
    totals = []
    for number in range(cluster.nodes):
        links = [link for link in cluster.links if node_name(number) in link.ends]
        if not links or any(link.mbit is None for link in links):
            return node.network_gbit
        totals.append(sum(float(link.mbit or 0.0) * link.count for link in links) / 1000)
    return min(totals)


def with_gpus(name: str, node: GpuNode, count: int) -> GpuNode:
    """The node type `name` with its first `count` GPUs only. Raises SpecError where no ring goes through them."""
    links = None
    if node.links is not None and count > 1:
        links = {f"{one}-{other}": links for (one, other), links in node.pairs().items() if max(one, other) < count}
    chosen = node.model_copy(update={"gpus": count, "links": links})
    if count > 1 and not channels_of(chosen).count:
        raise SpecError(f"no ring of NVLinks goes through {count} GPUs of node type {name!r}; take {node.gpus}")
    return chosen


@dataclass(frozen=True, eq=False)
class DevicePattern(Pattern):
    """A call over all ranks that the device model predicts as a whole."""

    operation: Operation = "all_reduce"


class DevicePatterns:
    """In place of schedules of messages."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks

    def of(self, call: effects.Collective) -> DevicePattern:
        """Of a call."""
        return DevicePattern(self.ranks, (), call.operation)


class DeviceExchange(Exchange):
    """Calls one after the other; each begins when all ranks have made it."""

    def __init__(self, devices: Devices, network: Network, nodes: Sequence[int], costs: MessageCosts) -> None:
        super().__init__(network, nodes, costs)
        self._devices = devices

    def exact(self, patterns: Iterable[Pattern]) -> bool:
        """Always: no call shares links with another."""
        return True

    def run(self, calls: Sequence[Call]) -> None:
        """Fill in `start` and `end`."""
        for call in calls:
            assert isinstance(call.pattern, DevicePattern)
            call.start = np.maximum(call.ready, self.free[0])
            seconds = call_s(self._devices, call.pattern.operation, call.nbytes, self.costs.device)
            call.end = np.full(len(call.start), float(call.start.max()) + seconds)
            self.free[0] = call.end


def call_s(devices: Devices, operation: Operation, nbytes: float, costs: DeviceCosts) -> float:
    """Seconds of a call."""
    if devices.node.gpus * devices.nodes == 1:
        return 0.0
    way = devices.way(operation, nbytes)
    latency = way.latency_us * 1e-6
    return costs.error(nbytes) * (costs.latency * latency + costs.per_byte * (way.seconds - latency))


@dataclass(frozen=True, slots=True)
class ChosenCalls:
    """Equal calls of a step, and how NCCL makes them; `seconds`: of each, as predicted."""

    operation: Operation
    nbytes: int
    count: int
    algorithm: Algorithm
    protocol: Protocol
    seconds: float


def chosen_calls(case: AnyCase, network: LayerTable) -> list[ChosenCalls]:
    """The calls of a step of a case that the model of NCCL predicts, largest first; none for any other case."""
    if (devices := devices_of(case)) is None or case.ranks == 1:
        return []
    assert isinstance(case, TrainCase)
    step, _ = listed(step_program(case, exchange_plan(case, network), None))
    counts = Counter((call.operation, call.nbytes) for call in collectives(step))
    calls = []
    for (operation, nbytes), count in sorted(counts.items(), key=lambda each: -each[0][1]):
        way = devices.way(operation, nbytes)
        calls.append(ChosenCalls(operation, nbytes, count, way.algorithm, way.protocol, way.seconds))
    return calls


def device_model(model: CostModel, devices: Devices) -> CostModel:
    """Costs of a case whose calls the model of NCCL predicts."""
    many = f"{devices.nodes} node{'s' if devices.nodes > 1 else ''}"
    return replace(
        model,
        source=f"by the model of NCCL 2.30.7 (docs/nccl.md): {devices.node.gpus} GPUs on each of {many}, "
        f"{devices.node.summary}",
        assumed=(
            "NCCL's model may be wrong by a factor of 2, for calls of 64 MiB and more by 40 % (suite gpu_collectives)",
            "gradients lie on the GPUs: no copy between host and device",
        ),
        device=UNCERTAINTY,
    )
