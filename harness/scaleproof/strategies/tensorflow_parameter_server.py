"""Synchronous parameter servers in TensorFlow's own runtime: variables, velocities, gradient accumulators and the
optimiser's step are on the servers' devices.

Between-graph replication as in TensorFlow 1 (SyncReplicasOptimizer): every rank has its own graph and session, and
accesses the servers' variables by name. There is one run per step: gradients go to the accumulators; a server takes
each sum when all ranks have sent their gradients, updates, and enqueues one token per rank; a rank that has dequeued a
server's token pulls its parameters. Tensors are moved between devices by RecvTensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import monotonic_ns as now
from typing import TYPE_CHECKING, Any

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.spec.case import TrainCase
from scaleproof.spec.case_checks import written_key
from scaleproof.spec.common_case import NATIVE
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.tags import server_tags
from scaleproof.strategies.base import Strategy
from scaleproof.strategies.buckets import ITEM, Bucket, Parameter
from scaleproof.strategies.parameter_server import ServerOptions, check_servers
from scaleproof.strategies.sender import Exchange
from scaleproof.strategies.server_placement import owners
from scaleproof.transports.contract import Collectives
from scaleproof.transports.tensorflow.session_server import SessionServer
from scaleproof.transports.tensorflow.tensorflow_grpc import TensorflowGrpc
from scaleproof.transports.tensorflow.tensorflow_server import check_size
from scaleproof.workloads.case_network import network_of

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext
    from scaleproof.workloads.model_contract import Model

MEET_S = 600.0


class TensorflowParameterServer(Strategy):
    """Parameters on the first `servers` ranks (0: on all), by turns or by bytes."""

    def __init__(
        self, context: RankContext, group: Collectives | None, parameters: Sequence[Parameter], bucket_mib: float
    ) -> None:
        super().__init__(context, group, parameters, bucket_mib)
        assert isinstance(context.case, TrainCase)
        if not isinstance(group, TensorflowGrpc):
            raise TransportError(
                "strategy 'tensorflow_parameter_server' runs on the servers of transport 'tensorflow-grpc'"
            )
        for parameter in self.parameters:
            check_size(parameter.elements * ITEM)
        self._traffic = group.traffic
        servers = context.case.value("strategy.servers", 0) or context.world_size
        self._owners = owners(context.case, network_of(context.case))
        self._graph = _Graph(group.server, context, self.parameters, self._owners)
        self._sent = self._messages()
        self._steps = 0
        context.facts["parameter_server"] = {
            "mechanism": "RecvTensor",
            "servers": servers,
            "tensor_nbytes": [parameter.elements * ITEM for parameter in self.parameters],
            "messages_to": {
                "push": len([owner for owner in self._owners if owner != context.rank]),
                "pull": self._owners.count(context.rank) * (context.world_size - 1),
            },
        }

    def allocate(self, limit_nbytes: float) -> tuple[list[Bucket], list[np.ndarray]]:
        """One tensor per bucket."""
        return super().allocate(0)

    def start(self, model: Model) -> None:
        """See Strategy. Each server initialises its variables; then all ranks may use them."""
        self._model = model
        self._graph.open(model.flat_values())
        self.context.rendezvous.exchange(
            "parameter_server.ready", self.context.rank, self.context.world_size, True, MEET_S
        )

    def gradient_ready(self, index: int) -> None:
        """Nothing to do before all gradients are ready: one run pushes all of them."""

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy. The servers run the optimiser's step during the exchange; event `update` is the loading of the
        new parameters on this rank."""
        context = self.context
        context.at(self.step, "push, step, pull")
        context.post.wait()
        start = now()
        pulled = self._graph.step(self.gradients, self._steps)
        end = now()
        context.post.stop_waiting()
        self._steps += 1
        for nbytes in self._sent:
            self._traffic.count(nbytes)
        context.recorder.add("wait", self.step, start, end)
        self.exchanges = [Exchange(start, start, end, ITEM * sum(parameter.elements for parameter in self.parameters))]
        self.apply(lambda: self._model.load_flat(pulled))

    def _messages(self) -> list[int]:
        """Bytes of each tensor that this rank sends in a step: gradients to other servers, and its own parameters to
        all other ranks."""
        rank, others = self.context.rank, self.context.world_size - 1
        sent = []
        for parameter, owner in zip(self.parameters, self._owners, strict=True):
            sent += [parameter.elements * ITEM] * (others if owner == rank else 1)
        return sent


class _Graph:
    """The graph of one rank: pushes, pulls, and its work as a server."""

    def __init__(
        self, servers: SessionServer, context: RankContext, parameters: Sequence[Parameter], owners: Sequence[int]
    ) -> None:
        self._servers, self._world_size = servers, context.world_size
        self._case: Any = context.case
        self._tf = tf = servers.tf
        self._own, self._graph = servers.device(servers.rank), tf.Graph()
        self._mine = [index for index, owner in enumerate(owners) if owner == servers.rank]
        with self._graph.as_default():
            with tf.device(self._own):
                self._gradients = [
                    tf.compat.v1.placeholder(tf.float32, [parameter.elements]) for parameter in parameters
                ]
                self._step = tf.compat.v1.placeholder(tf.int64, [])
            held = [
                self._hold(index, parameter.elements, servers.device(owner))
                for index, (parameter, owner) in enumerate(zip(parameters, owners, strict=True))
            ]
            pushes = [
                accumulator.apply_grad(gradient, self._step)
                for (_, accumulator), gradient in zip(held, self._gradients, strict=True)
            ]
            self._initial = self._assignments(held) if self._mine else None
            steps = [self._serve(held)] if self._mine else []
            tokens = {owner: self._tokens(owner).dequeue() for owner in sorted(set(owners))}
            pulls = [self._pull(variable, tokens[owner]) for (variable, _), owner in zip(held, owners, strict=True)]
            self._fetches = [pulls, *pushes, *steps]

    def open(self, values: Sequence[np.ndarray]) -> None:
        """Open the session and initialise the parameters."""
        session = self._servers.session(self._graph)
        if self._initial is not None:
            with self._servers.calling():
                session.run(self._initial, dict(zip(self._gradients, values, strict=True)))
        self._run = session.make_callable(self._fetches, [*self._gradients, self._step])

    def step(self, gradients: Sequence[np.ndarray], number: int) -> list[np.ndarray]:
        """Run one step of all ranks and return the new parameters, flat."""
        with self._servers.calling():
            pulled: list[np.ndarray] = self._run(*gradients, number)[0]
        return pulled

    def _hold(self, index: int, elements: int, device: str) -> tuple[Any, Any]:
        """A variable and its gradient accumulator, on the variable's server."""
        tf = self._tf
        with tf.device(device):
            variable = self._variable(f"parameter.{index}", elements)
            accumulator = tf.compat.v1.ConditionalAccumulator(
                tf.float32,
                shape=[elements],
                shared_name=f"gradient.{index}",
                reduction_type="SUM",
                name=f"gradient_{index}",
            )
        return variable, accumulator

    def _variable(self, name: str, elements: int) -> Any:
        return self._tf.raw_ops.VarHandleOp(dtype=self._tf.float32, shape=[elements], shared_name=name, container="")

    def _tokens(self, owner: int) -> Any:
        with self._tf.device(self._servers.device(owner)):
            return self._tf.queue.FIFOQueue(
                -1, [self._tf.int64], shapes=[[]], shared_name=f"tokens.{owner}", name=f"tokens_{owner}"
            )

    def _assignments(self, held: Sequence[tuple[Any, Any]]) -> Any:
        """Initialises this server's variables with the values fed as gradients, and velocities with zero."""
        tf = self._tf
        with tf.device(self._own):
            made = [
                tf.raw_ops.AssignVariableOp(resource=held[index][0], value=tf.identity(self._gradients[index]))
                for index in self._mine
            ]
            made += [
                tf.raw_ops.AssignVariableOp(resource=self._velocity(index), value=tf.zeros_like(self._gradients[index]))
                for index in self._mine
            ]
            return tf.group(*made)

    def _velocity(self, index: int) -> Any:
        return self._variable(f"velocity.{index}", math.prod(self._gradients[index].shape))

    def _serve(self, held: Sequence[tuple[Any, Any]]) -> Any:
        """As a server: an update with each sum of all ranks' gradients, then a token for every rank."""
        tf, case = self._tf, self._case
        with tf.device(self._own):
            stepped = [
                tf.raw_ops.ResourceApplyMomentum(
                    var=held[index][0],
                    accum=self._velocity(index),
                    lr=case.learning_rate,
                    grad=held[index][1].take_grad(self._world_size),
                    momentum=case.momentum,
                )
                for index in self._mine
            ]
            with tf.control_dependencies(stepped):
                return self._tokens(self._servers.rank).enqueue_many([tf.fill([self._world_size], self._step)])

    def _pull(self, variable: Any, token: Any) -> Any:
        tf = self._tf
        with tf.control_dependencies([token]), tf.device(variable.device):
            read = tf.raw_ops.ReadVariableOp(resource=variable, dtype=tf.float32)
        with tf.device(self._own):
            return tf.identity(read)


TRANSPORT = "tensorflow-grpc"
"""The transport whose servers hold the variables."""


def check(case: TrainCase) -> None:
    """Raises FieldError for a transport without TensorFlow's servers, or for one of our collective algorithms."""
    if case.transport != TRANSPORT:
        message = f"strategy {case.strategy!r} runs on the servers of transport {TRANSPORT!r}"
        raise FieldError(written_key(case, "transport"), message)
    if case.collective != NATIVE:
        message = f"strategy {case.strategy!r} has TensorFlow exchange by itself; leave it out, or {NATIVE!r}"
        raise FieldError("collective", message)
    check_servers(case)


PLUGIN = StrategyPlugin(
    name="tensorflow_parameter_server",
    summary="the same in TensorFlow's own runtime: variables, accumulators and optimiser on its servers",
    implementation=TensorflowParameterServer,
    requires=("tensorflow",),
    options=ServerOptions,
    check=check,
    has_servers=True,
    collective_calls=False,
    tags=server_tags,
)
