"""Synchronous parameter servers: workers push gradients, servers sum them and step, workers pull the new parameters
(xue2019, awan2019's gRPC arms).

Parameters are dealt round-robin, in network order, over the first `servers` ranks (0: over all); every rank is a worker
too. Every tensor travels by itself, by the case's mechanism. A gradient leaves as soon as the backward pass has it;
where the mechanism has fixed places, gradients are born in the memory that is sent and parameters live in the memory
that is received into, so that the framework reads and writes registered memory directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from time import monotonic_ns as now
from typing import TYPE_CHECKING, cast

import numpy as np
from pydantic import Field

from scaleproof.remote.tensor_channel import Arrival, Edge, Mechanism, TensorChannel, open_channel
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import Options, StrategyPlugin
from scaleproof.spec.tags import server_tags
from scaleproof.strategies.base import Strategy, plain_memory
from scaleproof.strategies.buckets import ITEM, Bucket, Parameter
from scaleproof.strategies.sender import Exchange
from scaleproof.strategies.step_program import Compute, Item, Passed, Plan, Pushed, Served, plan_of_buckets
from scaleproof.transports.contract import Collectives, Handle, Transport
from scaleproof.workloads.networks import Network

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext
    from scaleproof.remote.allocation_sites import AllocationSites
    from scaleproof.workloads.model_contract import Model

SOCKET = 4 << 20
"""Bytes that a socket takes at once: Linux's default, which nodes of fabric netns have, over the case's shrink."""


class ParameterServer(Strategy):
    """A server sums in the order of ranks, its own gradient first, with the model's own optimiser: all replicas hold
    the server's bits."""

    def __init__(
        self, context: RankContext, group: Collectives | None, parameters: Sequence[Parameter], bucket_mib: float
    ) -> None:
        assert group is not None and isinstance(context.case, TrainCase)
        self.case, self._sites = context.case, cast("AllocationSites | None", None)
        self.rank, ranks = group.rank, range(group.world_size)
        self.servers = context.case.value("strategy.servers", 0) or group.world_size
        self.mechanism = context.case.value("strategy.mechanism", "messages")
        self.owners = [index % self.servers for index in range(len(parameters))]
        self.order = list(reversed(range(len(parameters))))
        """Of the backward pass: the order of tensors between any two ranks."""
        fixed = self.mechanism != "dynamic"
        shapes = [(parameter.elements,) for parameter in parameters]
        pairs = [(index, worker) for index in self.order for worker in ranks if worker != self.owners[index]]
        self.push = {
            (index, worker): Edge(f"gradient {index}", worker, self.owners[index], shapes[index], static=fixed)
            for index, worker in pairs
        }
        self.pull = {
            (index, worker): Edge(f"parameter {index}", self.owners[index], worker, shapes[index], static=fixed)
            for index, worker in pairs
        }
        transport = cast(Transport, getattr(group, "transport", group))
        self.channel: TensorChannel = open_channel(
            self.mechanism, transport, [*self.push.values(), *self.pull.values()], context
        )
        super().__init__(context, group, parameters, bucket_mib)
        context.facts["parameter_server"] = {
            "mechanism": self.mechanism,
            "servers": self.servers,
            "tensor_nbytes": [bucket.nbytes for bucket in self.buckets],
            "messages_to": {
                "push": len([index for index in self.order if self.owners[index] != self.rank]),
                "pull": len(self._out()),
            },
        }

    def allocate(self, limit_nbytes: float) -> tuple[list[Bucket], list[np.ndarray]]:
        """One tensor in each; gradients of own parameters are not sent."""
        gradients = []
        for index, parameter in enumerate(self.parameters):
            edge = self.push.get((index, self.rank))
            gradients.append(self._plain(parameter.elements) if edge is None else self.channel.outgoing(edge))
            gradients[index].fill(0)
        return [Bucket(gradients[index], (index,)) for index in self.order], gradients

    def start(self, model: Model) -> None:
        """See Strategy: the parameters move to where they are sent from or received into."""
        self._model = model
        self._memory = [self._memory_of(index).reshape(value.shape) for index, value in enumerate(model.values())]
        if self.mechanism == "zero_copy" and self.case.framework == "torch":
            from scaleproof.remote.allocation_sites import AllocationSites

            self._sites = AllocationSites()
        self._shares_memory = model.use_memory(self._memory, self._sites)
        self._holding: list[Edge] = []

    def begin(self, step: int) -> None:
        """See Strategy; a server expects all gradients of its parameters."""
        super().begin(step)
        count = len(self.parameters)
        self._ready, self._left, self._back = [0] * count, [0] * count, [0] * count
        self._next = 0
        self._sending: list[Handle] = []
        self._gradients = {
            key: self.channel.recv(edge) for key, edge in self.push.items() if edge.destination == self.rank
        }

    def gradient_ready(self, index: int) -> None:
        """See Strategy. Gradients leave in one order on every rank, whatever order they come in."""
        self._ready[index] = now()
        while self._next < len(self.order) and self._ready[self.order[self._next]]:
            index = self.order[self._next]
            self._left[index] = now()
            edge = self.push.get((index, self.rank))
            if edge is not None:
                self._sending.append(self.channel.send(edge, self.gradients[index]))
            self._next += 1
        self.channel.advance()

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy; the optimiser's step is made for the own parameters only. Here the old parameters are no longer
        needed."""
        if self._next < len(self.order):
            raise RuntimeError(
                f"the backward pass ended without {len(self.order) - self._next} of {len(self.order)} gradients"
            )
        self.context.at(self.step, "push, step, pull")
        start = now()
        for edge in self._holding:
            self.channel.release(edge)
        arrivals = {
            index: self.channel.recv(self.pull[index, self.rank])
            for index in self.order
            if self.owners[index] != self.rank
        }
        self._serve()
        self._receive(arrivals)
        for handle in self._sending:
            handle.wait()
        self.context.recorder.add("wait", self.step, start, now())
        if not self._shares_memory and arrivals:
            self.apply(lambda: self._model.load(self._memory))
        self.exchanges = [
            Exchange(self._ready[index], self._left[index], self._back[index], self.gradients[index].nbytes)
            for index in self.order
        ]

    def report(self) -> None:
        """See Strategy; and which gradients were allocated in the memory that is sent."""
        super().report()
        if self._sites is not None and self.case.compute == "real":
            moment, births = now(), self._sites.births
            self.context.recorder.add("born_placed", self.step, moment, moment, value=births.placed)
            self.context.recorder.add("born_copied", self.step, moment, moment, births.copied_bytes, births.copied)

    def close(self) -> None:
        """See Strategy."""
        self.context.facts["parameter_server"]["cost"] = asdict(self.channel.counts.total)
        super().close()
        self.channel.close()

    def _serve(self) -> None:
        """Sum, step and send the own parameters: each as soon as it is complete, where the framework updates them in
        the memory that is sent."""
        own = [index for index in self.order if self.owners[index] == self.rank]
        for part in [[index] for index in own] if self._shares_memory else [own] if own else []:
            for index in part:
                self._sum(index)
            self.apply(lambda part=part: self._model.update(part))  # type: ignore[misc]
            if not self._shares_memory:
                values = self._model.values()
                for index in part:
                    np.copyto(self._memory[index], values[index])
            for index in part:
                self._back[index] = now()
                self._sending += [
                    self.channel.send(edge, self._memory[index].reshape(-1)) for edge in self._edges_of(index)
                ]

    def _sum(self, index: int) -> None:
        total = self.gradients[index]
        for worker in range(self.context.world_size):
            if worker != self.rank:
                np.add(total, self._gradients.pop((index, worker)).wait(), out=total)
                self.channel.release(self.push[index, worker])

    def _receive(self, arrivals: dict[int, Arrival]) -> None:
        """The new parameters, copied to their memory unless they arrived in it."""
        self._holding = [self.pull[index, self.rank] for index in arrivals]
        for index, arrival in arrivals.items():
            array = arrival.wait()
            if self.mechanism == "dynamic":
                np.copyto(self._memory[index].reshape(-1), array)
                cost = self.channel.counts.of(self.pull[index, self.rank])
                cost.copies += 1
                cost.copied_bytes += array.nbytes
            self._back[index] = now()

    def _memory_of(self, index: int) -> np.ndarray:
        edge = self.pull.get((index, self.rank))
        if edge is not None:
            return (
                self._plain(self.parameters[index].elements)
                if self.mechanism == "dynamic"
                else self.channel.incoming(edge)
            )
        workers = self._edges_of(index)
        return self.channel.outgoing(workers[0]) if workers else self._plain(self.parameters[index].elements)

    def _edges_of(self, index: int) -> list[Edge]:
        return [self.pull[index, worker] for worker in range(self.context.world_size) if (index, worker) in self.pull]

    def _out(self) -> list[Edge]:
        return [edge for edge in self.pull.values() if edge.source == self.rank]

    @staticmethod
    def _plain(elements: int) -> np.ndarray:
        return plain_memory(elements * ITEM).view(np.float32)


def simulated_step(plan: Plan, passed: Passed, update: Compute, across: bool) -> list[Item]:
    """Every gradient leaves by itself."""
    items: list[Item] = []
    order = list(reversed(range(len(plan.layers))))
    at_once = [index for index in order if index not in plan.late]
    if not passed:
        items += [Pushed(index) for index in at_once]
    for place, before, after in passed:
        items.append(Compute("backward", before))
        items += [Pushed(index) for index in at_once if plan.layers[index] == place]
        items.append(Compute("backward", after))
    return [*items, *(Pushed(index) for index in order if index in plan.late), Served()]


def simulated_plan(case: TrainCase, network: Network) -> Plan:
    """Tensors by themselves; large ones leave late where the main thread has to move them."""
    plan = plan_of_buckets(case, network)
    return replace(plan, late=_late(case, plan.parameters))


def _late(case: TrainCase, sizes: Sequence[float]) -> frozenset[int]:
    """A server's messages are moved by the main thread, which computes: what no socket takes at once waits for the end
    of the backward pass, and behind it what the same server gets after."""
    held, late = set[int](), set[int]()
    for index in reversed(range(len(sizes) if case.plugin("transport").moves_in_wait else 0)):
        owner = index % (case.value("strategy.servers", 0) or case.ranks)
        if owner in held or sizes[index] > SOCKET / case.shrink:
            held.add(owner)
            late.add(index)
    return frozenset(late)


class ServerOptions(Options):
    """Options of parameter servers."""

    servers: int = Field(
        0,
        ge=0,
        description="Parameter servers, on the first ranks, parameters round-robin over them; 0: one on every rank.",
    )


class MechanismOptions(ServerOptions):
    """Options of servers whose tensors travel by a mechanism of ours."""

    mechanism: Mechanism = Field("messages", description="How tensors travel (docs/remote.md).")


def check_servers(case: TrainCase) -> None:
    """Raises FieldError for more servers than ranks."""
    servers = case.value("strategy.servers")
    if servers > case.ranks:
        raise FieldError("strategy.servers", f"{servers} servers for {case.ranks} ranks; a server is one of them")


def check(case: TrainCase) -> None:
    """Raises FieldError where the mechanism needs another transport, or for too many servers."""
    mechanism = case.options_of(MechanismOptions).mechanism
    if mechanism != "messages" and case.transport and not case.plugin("transport").one_sided:
        one_sided = [plugin.name for plugin in registry.plugins("transport").values() if plugin.one_sided]  # type: ignore[attr-defined]
        wanted = f"needs one-sided writes ({', '.join(one_sided)}), not transport {case.transport!r}"
        raise FieldError("strategy.mechanism", f"mechanism {mechanism!r} {wanted}")
    check_servers(case)


PLUGIN = StrategyPlugin(
    name="parameter_server",
    summary="synchronous: servers sum gradients, step, give parameters back",
    implementation=ParameterServer,
    options=MechanismOptions,
    check=check,
    has_servers=True,
    collective_calls=False,
    simulated_step=simulated_step,
    simulated_plan=simulated_plan,
    tags=server_tags,
)
