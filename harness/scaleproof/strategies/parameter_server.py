"""Synchronous parameter servers: workers push gradients, servers sum them and update, workers pull the new parameters
(xue2019, awan2019's gRPC arms).

Parameters are distributed over the first `servers` ranks (0: all ranks), by turns or by bytes; every rank is also a
worker. Every tensor is sent separately, by the case's mechanism. A gradient is sent as soon as the backward pass
has computed it. If the mechanism uses fixed buffers, gradients are allocated in the send buffers and parameters in the
receive buffers, so that the framework reads and writes registered memory directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from time import monotonic_ns as now
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
from pydantic import Field

from scaleproof.remote.tensor_channel import Arrival, Edge, Mechanism, TensorChannel, open_channel
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import Options, StrategyPlugin
from scaleproof.spec.tags import server_tags
from scaleproof.strategies import parameter_server_step
from scaleproof.strategies.base import Strategy
from scaleproof.strategies.buckets import ITEM, Bucket, Parameter
from scaleproof.strategies.sender import Exchange
from scaleproof.strategies.server_placement import owners
from scaleproof.transports._buffers import plain_memory
from scaleproof.transports.contract import Collectives, Handle, Transport
from scaleproof.workloads.case_network import network_of

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext
    from scaleproof.remote.allocation_sites import AllocationSites
    from scaleproof.workloads.model_contract import Model


class ParameterServer(Strategy):
    """A server sums in the order of ranks, its own gradient first, and updates with the model's optimiser. All replicas
    hold the same bits as the server."""

    def __init__(
        self, context: RankContext, group: Collectives | None, parameters: Sequence[Parameter], bucket_mib: float
    ) -> None:
        assert group is not None and isinstance(context.case, TrainCase)
        self.case, self._sites = context.case, cast("AllocationSites | None", None)
        self.rank, ranks = group.rank, range(group.world_size)
        self.servers = context.case.value("strategy.servers", 0) or group.world_size
        self.mechanism = context.case.value("strategy.mechanism", "messages")
        self.owners = owners(self.case, network_of(self.case))
        self.order = list(reversed(range(len(parameters))))
        """Parameters in the order of the backward pass, which is the order of tensors between any two ranks."""
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
                "pull": len([edge for edge in self.pull.values() if edge.source == self.rank]),
            },
        }

    def allocate(self, limit_nbytes: float) -> tuple[list[Bucket], list[np.ndarray]]:
        """One tensor per bucket. Gradients of the parameters that this rank serves are not sent."""
        gradients = []
        for index, parameter in enumerate(self.parameters):
            edge = self.push.get((index, self.rank))
            gradients.append(self._plain(parameter.elements) if edge is None else self.channel.outgoing(edge))
            gradients[index].fill(0)
        return [Bucket(gradients[index], (index,)) for index in self.order], gradients

    def start(self, model: Model) -> None:
        """See Strategy: the parameters move into the send or receive buffers."""
        self._model = model
        self._memory = [self._memory_of(index).reshape(value.shape) for index, value in enumerate(model.values())]
        if self.mechanism == "zero_copy" and self.case.framework == "torch":
            from scaleproof.remote.allocation_sites import AllocationSites

            self._sites = AllocationSites()
        self._shares_memory = model.use_memory(self._memory, self._sites)
        self._holding: list[Edge] = []

    def begin(self, step: int) -> None:
        """See Strategy; a server posts receives for all gradients of its parameters."""
        super().begin(step)
        count = len(self.parameters)
        self._ready_ns, self._sent_ns, self._returned_ns = [0] * count, [0] * count, [0] * count
        self._next = 0
        self._sending: list[Handle] = []
        self._gradients = {
            key: self.channel.recv(edge) for key, edge in self.push.items() if edge.destination == self.rank
        }

    def gradient_ready(self, index: int) -> None:
        """See Strategy. Gradients are sent in the same order on every rank, in whatever order they become ready."""
        self._ready_ns[index] = now()
        while self._next < len(self.order) and self._ready_ns[self.order[self._next]]:
            index = self.order[self._next]
            self._sent_ns[index] = now()
            edge = self.push.get((index, self.rank))
            if edge is not None:
                self._sending.append(self.channel.send(edge, self.gradients[index]))
            self._next += 1
        self.channel.advance()

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy; updates only the parameters that this rank serves. The old parameters are released, since they
        are no longer needed."""
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
            Exchange(
                self._ready_ns[index], self._sent_ns[index], self._returned_ns[index], self.gradients[index].nbytes
            )
            for index in self.order
        ]

    def report(self) -> None:
        """See Strategy; also records how many gradients were allocated in their send buffers."""
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
        """Sums, updates and sends the parameters of this server: each as soon as it is complete if the framework
        updates them in the send buffers, otherwise all together."""
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
                self._returned_ns[index] = now()
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
        """Receives the new parameters and copies them unless they arrived in the parameters' memory."""
        self._holding = [self.pull[index, self.rank] for index in arrivals]
        for index, arrival in arrivals.items():
            array = arrival.wait()
            if self.mechanism == "dynamic":
                np.copyto(self._memory[index].reshape(-1), array)
                cost = self.channel.counts.of(self.pull[index, self.rank])
                cost.copies += 1
                cost.copied_bytes += array.nbytes
            self._returned_ns[index] = now()

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

    @staticmethod
    def _plain(elements: int) -> np.ndarray:
        return plain_memory(elements * ITEM).view(np.float32)


simulated_step = parameter_server_step.simulated_step
simulated_plan = parameter_server_step.simulated_plan


class ServerOptions(Options):
    """Options of parameter servers."""

    servers: int = Field(
        0,
        ge=0,
        description="Parameter servers, on the first ranks; 0: one on every rank.",
    )
    placement: Literal["turns", "bytes"] = Field(
        "turns",
        description="How parameters are distributed, in network order: servers take turns; or each goes to the server "
        "with the fewest bytes so far, as TensorFlow 1's GreedyLoadBalancingStrategy does by byte_size_load_fn.",
    )


class MechanismOptions(ServerOptions):
    """Options of servers whose tensors are sent by one of our mechanisms."""

    mechanism: Mechanism = Field("messages", description="How tensors travel (docs/remote.md).")
    server: Literal["worker", "process"] = Field(
        "worker",
        description="Who serves: a worker, after its own backward pass; or, only on fabric simulated, a process beside "
        "it at any time, as in TensorFlow.",
    )


def check_servers(case: TrainCase) -> None:
    """Raises FieldError for more servers than ranks."""
    servers = case.value("strategy.servers")
    if servers > case.ranks:
        raise FieldError("strategy.servers", f"{servers} servers for {case.ranks} ranks; a server is one of them")


def check(case: TrainCase) -> None:
    """Raises FieldError if the mechanism needs another transport, or for too many servers."""
    mechanism = case.options_of(MechanismOptions).mechanism
    if mechanism != "messages" and case.transport and not case.plugin("transport").one_sided:
        one_sided = registry.with_trait("transport", "one_sided")
        requirement = f"needs one-sided writes ({', '.join(one_sided)}), not transport {case.transport!r}"
        raise FieldError("strategy.mechanism", f"mechanism {mechanism!r} {requirement}")
    if case.value("strategy.server") == "process" and not case.plugin("fabric").predicted:
        raise FieldError("strategy.server", "a server in a process of its own is only simulated: fabric: simulated")
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
