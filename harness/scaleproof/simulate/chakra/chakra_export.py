"""Exports one step of a training case as a Chakra trace: the same program that the simulator runs, rank by rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scaleproof.rank_programs.effects import (
    ALL,
    Await,
    AwaitAll,
    Collective,
    Compute,
    Effect,
    Receive,
    Send,
    Start,
    Started,
)
from scaleproof.simulate.chakra import chakra_files, chakra_graph
from scaleproof.simulate.chakra.chakra_files import NodeType
from scaleproof.simulate.chakra.chakra_trace import Node, Trace
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.predict import Inputs
from scaleproof.simulate.program import exchange_plan, step_program
from scaleproof.simulate.rank_graph.recorded_graph import recorded_graph
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.strategies.parameter_server_step import from_server, parameter_of, to_server
from scaleproof.strategies.step_program import Plan, collectives, listed
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import Profile

COLLECTIVES = {
    "all_reduce": chakra_files.Collective.ALL_REDUCE,
    "all_gather": chakra_files.Collective.ALL_GATHER,
    "reduce_scatter": chakra_files.Collective.REDUCE_SCATTER,
    "broadcast": chakra_files.Collective.BROADCAST,
}
CASE = "scaleproof_case"
"""Metadata attribute with the case's canonical JSON. It tells a replay what the trace does not contain (links,
transport, algorithm)."""
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
    step, _ = listed(step_program(plain, plan, profile))
    groups = _groups(plain.ranks, plan.groups) if any(call.group != ALL for call in collectives(step)) else {}
    update_s = profile.update_s.median if profile else 0.0
    ranks = tuple(
        _Rank(rank, plain, network, plan, groups, costs.gamma, update_s).nodes_of(step) for rank in range(plain.ranks)
    )
    named = {str(number): members for (_, number), members in groups.items()}
    return Trace(ranks, named, _about(plain))


def trace_of_all_steps(inputs: Inputs) -> Trace:
    """The trace of a strategy that is a program of each rank: what its ranks did in all steps of a predicted run, on
    the links of the case. Raises SpecError for what a trace cannot express."""
    case = inputs.case
    assert isinstance(case, TrainCase)
    return replace(chakra_graph.trace_of(recorded_graph(inputs), f"case {case.case_id}"), about=_about(case))


def _about(plain: TrainCase) -> dict[str, Any]:
    """Of a case without dilation and shrink."""
    return {
        "generator": "scaleproof",
        "workload": plain.workload,
        "ranks": plain.ranks,
        "minibatch": plain.minibatch,
        CASE: plain.canonical(),
    }


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
    _started: list[list[int]] = field(default_factory=list)
    """Ids of what has been started; none for a call of a group of one, or a message to itself."""
    _lanes: dict[tuple[int, int], int] = field(default_factory=dict)
    _waits: list[int] = field(default_factory=list)
    """Ids of messages that the end of the step waits for."""
    _pushed: list[int] = field(default_factory=list)
    """Parameters in the order in which their gradients are sent."""

    def nodes_of(self, step: Sequence[Effect]) -> tuple[Node, ...]:
        """The nodes of all effects."""
        pieces = {event: iter(names) for event, names in self._pieces(step).items()}
        for effect in step:
            if isinstance(effect, Compute):
                event = effect.event
                name, flop = next(pieces[event], (event, 0)) if event in pieces else (event, 0)
                self._stream = [self._add(name, NodeType.COMP, self._stream, seconds=effect.seconds, flop=flop)]
            elif isinstance(effect, Start) and isinstance(effect.effect, Collective):
                self._started.append(self._call(effect.effect))
            elif isinstance(effect, Start) and isinstance(effect.effect, Send):
                self._started.append(self._push(parameter_of(effect.effect.tag)))
            elif isinstance(effect, Receive):
                if self._pushed:
                    self._serve()
                if effect.source != self.rank:
                    self._waits.append(self._receive(effect.source, effect.tag))
            elif isinstance(effect, Await | AwaitAll):
                self._await([effect.started] if isinstance(effect, Await) else effect.started)
        return tuple(self.nodes)

    def _await(self, started: Sequence[Started]) -> None:
        self._stream += [*self._waits, *(number for each in started for number in self._started[each.number])]
        self._waits = []

    def _pieces(self, step: Sequence[Effect]) -> dict[str, list[tuple[str, int]]]:
        """Names and FLOP of the pieces of both passes: one per layer, or two where the gradient of the weights is
        computed before the gradient of the input."""
        layers, batch = self.network.layers, self.case.minibatch // self.case.ranks
        pieces = {"forward": [(f"forward {layer.name}", 2 * layer.mac * batch) for layer in layers]}
        one_piece = sum(isinstance(each, Compute) and each.event == "backward" for each in step) <= len(layers)
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

    def _call(self, call: Collective) -> list[int]:
        group, sharers = None, self.case.ranks
        if call.group != ALL:
            scopes = self.groups.items()
            own = [key for key, members in scopes if key[0] == call.group and self.rank in members]
            if not own:
                return []  # a group of one exchanges nothing
            group, sharers = str(own[0][1]), len(self.groups[own[0]])
        # ASTRA-sim reads the size of a rank's input: for an all-gather that is its own part.
        parts = sharers if call.operation == "all_gather" else 1
        number = self._add(
            f"{call.operation} {call.tag}",
            NodeType.COMM_COLL,
            [*self._stream, *self._channel],
            nbytes=round(call.nbytes / parts),
            operation=COLLECTIVES[call.operation],
            group=group,
        )
        self._channel = [number]
        return self._channel

    def _send(self, peer: int, tag: int, after: Sequence[int]) -> int:
        """Messages between two ranks are sent one after the other."""
        index = parameter_of(tag)
        lane = [self._lanes[self.rank, peer]] if (self.rank, peer) in self._lanes else []
        values = {"nbytes": round(self.plan.parameters[index]), "peer": peer, "tag": tag}
        self._lanes[self.rank, peer] = self._add(
            f"send tensor {index} to rank {peer}", NodeType.COMM_SEND, [*after, *lane], **values
        )
        return self._lanes[self.rank, peer]

    def _receive(self, peer: int, tag: int) -> int:
        index = parameter_of(tag)
        values = {"nbytes": round(self.plan.parameters[index]), "peer": peer, "tag": tag}
        return self._add(f"receive tensor {index} from rank {peer}", NodeType.COMM_RECV, (), **values)

    def _push(self, index: int) -> list[int]:
        owner = self.plan.owners[index]
        self._pushed.append(index)
        return [self._send(owner, to_server(index), self._stream)] if owner != self.rank else []

    def _serve(self) -> None:
        """As a server: updates each of its tensors in turn, once all gradients have arrived and its own backward pass
        has ended."""
        total, others = sum(self.plan.parameters), [rank for rank in range(self.case.ranks) if rank != self.rank]
        for index in self._pushed:
            if self.plan.owners[index] == self.rank:
                receives = [self._receive(worker, to_server(index)) for worker in others]
                seconds = (
                    self.gamma * self.plan.parameters[index] * len(others)
                    + self.update_s * self.plan.parameters[index] / total
                )
                self._stream = [
                    self._add(
                        f"sum and update tensor {index}", NodeType.COMP, [*self._stream, *receives], seconds=seconds
                    )
                ]
                self._waits += [self._send(worker, from_server(index), self._stream) for worker in others]
        self._pushed = []
