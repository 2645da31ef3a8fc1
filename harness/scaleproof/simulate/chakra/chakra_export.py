"""Exports one step of a training case as a Chakra trace: the same program that the simulator runs, rank by rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from scaleproof.simulate.chakra.chakra_files import Collective, NodeType
from scaleproof.simulate.chakra.chakra_trace import Node, Trace
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.program import exchange_plan, step_program
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.strategies.server_placement import owners
from scaleproof.strategies.step_program import Compute, Item, Plan, Pushed, Served, Submit, Wait
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import Profile

COLLECTIVES = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "broadcast": Collective.BROADCAST,
}
CASE = "scaleproof_case"
"""Metadata attribute with the case's canonical JSON. It tells a replay what the trace does not contain (links,
transport, algorithm)."""
TO_SERVER, FROM_SERVER = 0, 1
USUAL = {
    "strategy.communication": "thread",
    "strategy.channels": 1,
    "strategy.bucket_order": "ready",
    "strategy.forward_waits": "step",
}
"""The only option values that a trace can express."""


def trace_of(case: TrainCase, profile: Profile | None, costs: MessageCosts) -> Trace:
    """The trace of a case, without dilation and shrink. `costs` gives the time of a server's sums; the time of messages
    is left to the replay. Raises SpecError if the transport fuses tensors, because then the messages depend on
    times."""
    if case.value("transport.fusion_mib") is not None:
        raise SpecError(
            f"transport {case.transport!r} fuses tensors as they come (fusion_mib): the messages depend on times, not "
            "on the case alone"
        )
    if beyond := [key for key, usual in USUAL.items() if case.value(key, usual) != usual]:
        raise SpecError(
            f"{beyond[0]} {case.value(beyond[0])}: a trace has only nodes and their dependencies and cannot express "
            "this; leave it out"
        )
    plain = case.model_copy(update={"dilation": 1.0, "shrink": 1.0})
    network = network_of(plain)
    plan = exchange_plan(plain, network)
    items = step_program(plain, plan, profile)
    groups = (
        _groups(plain.ranks, plan.groups)
        if any(isinstance(item, Submit) and item.scope != "all" for item in items)
        else {}
    )
    update_s = profile.update_s.median if profile else 0.0
    ranks = tuple(
        _Rank(rank, plain, network, plan, groups, costs.gamma, update_s).nodes_of(items) for rank in range(plain.ranks)
    )
    named = {str(number): members for (_, number), members in groups.items()}
    about = {
        "generator": "scaleproof",
        "workload": case.workload,
        "ranks": case.ranks,
        "minibatch": case.minibatch,
        CASE: plain.canonical(),
    }
    return Trace(ranks, named, about)


def _groups(ranks: int, count: int) -> dict[tuple[str, int], tuple[int, ...]]:
    """Members of the groups by scope and number from 1: groups of neighbours, then groups of ranks with the same
    position in their groups."""
    size = ranks // count
    inside = [tuple(range(first, first + size)) for first in range(0, ranks, size)]
    between = [tuple(range(first, ranks, size)) for first in range(size)]
    scopes = [("inside", members) for members in inside] + [("between", members) for members in between]
    return {(scope, number): members for number, (scope, members) in enumerate(scopes, 1) if len(members) > 1}


@dataclass(slots=True)
class _Rank:
    """Nodes of one rank in the order of the program. `_stream`: ids that the next piece of computing waits for;
    `_channel`: id of the last call, since one thread makes all calls."""

    rank: int
    case: TrainCase
    network: Network
    plan: Plan
    groups: dict[tuple[str, int], tuple[int, ...]]
    gamma: float
    update_s: float
    nodes: list[Node] = field(default_factory=list)
    _stream: list[int] = field(default_factory=list)
    _channel: list[int] = field(default_factory=list)
    _calls: dict[int, int] = field(default_factory=dict)
    _open: list[int] = field(default_factory=list)
    _lanes: dict[tuple[int, int], int] = field(default_factory=dict)
    _pushed: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _owners: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._owners = owners(self.case, self.network)

    def nodes_of(self, items: Sequence[Item]) -> tuple[Node, ...]:
        """The nodes of all items."""
        pieces = {event: iter(names) for event, names in self._pieces(items).items()}
        for item in items:
            if isinstance(item, Compute):
                name, flop = next(pieces[item.event], (item.event, 0)) if item.event in pieces else (item.event, 0)
                self._stream = [self._add(name, NodeType.COMP, self._stream, seconds=item.seconds, flop=flop)]
            elif isinstance(item, Submit):
                self._submit(item)
            elif isinstance(item, Wait):
                self._stream += (
                    [self._calls[item.number]]
                    if item.number in self._calls
                    else self._open
                    if item.number is None
                    else []
                )
            elif isinstance(item, Pushed):
                self._push(item.index)
            elif isinstance(item, Served):
                self._served()
        return tuple(self.nodes)

    def _pieces(self, items: Sequence[Item]) -> dict[str, list[tuple[str, int]]]:
        """Names and FLOP of the pieces of both passes: one per layer, or two where the gradient of the weights is
        computed before the gradient of the input."""
        layers, batch = self.network.layers, self.case.minibatch // self.case.ranks
        pieces = {"forward": [(f"forward {layer.name}", 2 * layer.mac * batch) for layer in layers]}
        one_piece = sum(isinstance(item, Compute) and item.event == "backward" for item in items) <= len(layers)
        suffixes = [""] if one_piece else [", weights", ", input"]
        pieces["backward"] = []
        for layer in reversed(layers):
            inputs = 0 if layer is self.network.trainable[0] else layer.mac
            amounts = [2 * (layer.mac + inputs) * batch] if one_piece else [2 * layer.mac * batch, 2 * inputs * batch]
            pieces["backward"] += [
                (f"backward {layer.name}{suffix}", amount) for suffix, amount in zip(suffixes, amounts, strict=True)
            ]
        return pieces

    def _add(self, name: str, kind: NodeType, after: Sequence[int], **values: object) -> int:
        number = len(self.nodes)
        self.nodes.append(Node(number, name, kind, tuple(dict.fromkeys(after)), **values))  # type: ignore[arg-type]
        return number

    def _submit(self, item: Submit) -> None:
        group = None
        if item.scope != "all":
            group = next(
                (
                    str(number)
                    for (scope, number), members in self.groups.items()
                    if scope == item.scope and self.rank in members
                ),
                None,
            )
            if group is None:
                return  # a group of one exchanges nothing
        after = [*self._stream, *self._channel]
        # ASTRA-sim reads the size of a rank's input: for an all-gather that is its own part.
        sharers = (
            (len(self.groups[item.scope, int(group)]) if group is not None else self.case.ranks)
            if item.operation == "all_gather"
            else 1
        )
        number = self._add(
            f"{item.operation} {item.number}",
            NodeType.COMM_COLL,
            after,
            nbytes=round(item.nbytes / sharers),
            operation=COLLECTIVES[item.operation],
            group=group,
        )
        self._channel, self._calls[item.number] = [number], number
        self._open.append(number)

    def _owner(self, index: int) -> int:
        return self._owners[index]

    def _send(self, peer: int, index: int, way: int, after: Sequence[int]) -> int:
        """Messages between two ranks are sent one after the other."""
        lane = [self._lanes[self.rank, peer]] if (self.rank, peer) in self._lanes else []
        values = {"nbytes": round(self.plan.parameters[index]), "peer": peer, "tag": 2 * index + way}
        self._lanes[self.rank, peer] = self._add(
            f"send tensor {index} to rank {peer}", NodeType.COMM_SEND, [*after, *lane], **values
        )
        return self._lanes[self.rank, peer]

    def _receive(self, peer: int, index: int, way: int) -> int:
        values = {"nbytes": round(self.plan.parameters[index]), "peer": peer, "tag": 2 * index + way}
        return self._add(f"receive tensor {index} from rank {peer}", NodeType.COMM_RECV, (), **values)

    def _push(self, index: int) -> None:
        owner = self._owner(index)
        self._pushed[index] = tuple(self._stream)
        if owner != self.rank:
            self._open.append(self._send(owner, index, TO_SERVER, self._stream))

    def _served(self) -> None:
        """As a server: updates each of its tensors in turn, once all gradients have arrived and its own backward pass
        has ended. Then as a worker: receives the other tensors."""
        total, others = sum(self.plan.parameters), [rank for rank in range(self.case.ranks) if rank != self.rank]
        for index in self._pushed:
            if self._owner(index) == self.rank:
                receives = [self._receive(worker, index, TO_SERVER) for worker in others]
                seconds = (
                    self.gamma * self.plan.parameters[index] * len(others)
                    + self.update_s * self.plan.parameters[index] / total
                )
                self._stream = [
                    self._add(
                        f"sum and update tensor {index}", NodeType.COMP, [*self._stream, *receives], seconds=seconds
                    )
                ]
                self._open += [self._send(worker, index, FROM_SERVER, self._stream) for worker in others]
        receives = [
            self._receive(self._owner(index), index, FROM_SERVER)
            for index in self._pushed
            if self._owner(index) != self.rank
        ]
        self._stream += [*receives, *self._open]
