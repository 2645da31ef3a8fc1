"""Tensors that are allocated in their send buffers: a worker (rank 0) trains a network whose parameters are on a server
(rank 1). The graph analyser decides how each tensor is sent, allocation-site tracing where it is allocated. Batches
differ in size from step to step, so the activations sent to the server are dynamic.

Every step counts the sent tensors that were allocated in place and those that had to be copied. After the steps the
content of all tensors is compared.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import timed_iterations, timed_region
from scaleproof.remote.tensor_channel import Edge, TensorChannel, shared_channel
from scaleproof.spec import registry
from scaleproof.spec.case import OwnCase
from scaleproof.transports.contract import Array, Handle
from scaleproof.workloads.networks import Network

WORKER, SERVER = 0, 1
LAST = "exp"
"""The server's operation on the network's outputs."""
MEET_S = 120.0
SPREAD = 3
"""Number of different batch sizes, used in turn."""
PRELOAD = ("torch",)


def run(context: RankContext) -> None:
    """See the module. Options: workload, width, image_side (0: the network's own), batch (the largest)."""
    case = context.case
    assert isinstance(case, OwnCase) and case.transport is not None
    context.at(-1, "analyser")
    options = case.options
    network: Network = registry.load("workload", str(options["workload"]))(
        int(options["image_side"]) or None, float(options["width"])
    )
    worker = _Worker(context, network) if context.rank == WORKER else None
    edges = [
        Edge(*fields[:3], tuple(fields[3]), *fields[4:])
        for fields in _shared_edges(context, worker, int(options["batch"]))
    ]
    transport = registry.load("transport", case.transport).connect(context)
    static, dynamic = [edge for edge in edges if edge.static], [edge for edge in edges if not edge.static]
    with (
        timed_region(context, transport),
        shared_channel("zero_copy", transport, static, context) as fixed,
        shared_channel("dynamic", transport, dynamic, context) as varying,
    ):
        sums = worker.steps(case, fixed, varying) if worker else _serve(context, case, fixed, varying)
        _compare(context, sums)


def _shared_edges(context: RankContext, worker: _Worker | None, batch: int) -> list[list[Any]]:
    """The worker analyses the graph and sends the edges to the server."""
    own = worker.edges(batch) if worker else None
    everyone: list[Any] = context.rendezvous.exchange("edges", context.rank, context.world_size, own, MEET_S)
    return everyone[WORKER]  # type: ignore[no-any-return]


def _serve(context: RankContext, case: OwnCase, fixed: TensorChannel, varying: TensorChannel) -> list[int]:
    """Receives the tensors of every step; returns their checksums."""
    sums = []
    for step in timed_iterations(context, case.warmup, case.iterations):
        context.at(step, "tensors of a step", WORKER)
        for channel in (varying, fixed):
            for edge, arrival in [(edge, channel.recv(edge)) for edge in channel.edges]:
                sums.append(zlib.crc32(np.ascontiguousarray(arrival.wait()).data))
                channel.release(edge)
    return sums


def _compare(context: RankContext, sums: list[int]) -> None:
    everyone = context.rendezvous.exchange("sums", context.rank, context.world_size, sums, MEET_S)
    wrong = sum(own != peer for own, peer in zip(*everyone, strict=True))
    context.check("content", not wrong, f"{wrong} of {len(sums)} tensors arrived otherwise than they were sent")


class _Worker:
    """The network, the edges of the tensors it sends, and their allocation sites."""

    def __init__(self, context: RankContext, network: Network) -> None:
        import torch

        from scaleproof.frameworks.torch.torch_model import module_of
        from scaleproof.remote.allocation_sites import AllocationSites
        from scaleproof.workloads.data import initial_parameters

        torch.set_num_threads(context.case.threads_per_rank)
        self.context, self.network, self.torch, self.sites = context, network, torch, AllocationSites()
        self.module = module_of(network)
        values = initial_parameters(network, context.seed)
        self.module.load_state_dict(
            dict(zip(self.module.state_dict(), map(torch.from_numpy, values), strict=True)), assign=True
        )
        self.random = np.random.default_rng([context.seed, 6])

    def edges(self, batch: int) -> list[tuple[Any, ...]]:
        """The edges that the analyser decides on, whose results are recorded. Parameters and the last operation are on
        the server."""
        from scaleproof.remote.analyse_torch import tensors_of
        from scaleproof.remote.graph_analyser import decide

        module = served(self.torch, self.network)
        own = dict(module.named_parameters())
        inputs = [self.torch.zeros((2, *self.network.input_shape), device="meta")]
        decisions = decide(
            tensors_of(module, inputs, [{0: "batch"}], lambda name: SERVER if name in own or name == LAST else WORKER)
        )
        weights = [decision for decision in decisions if any(decision.tensor.name.endswith(name) for name in own)]
        self.context.facts["found"] = {
            "static_edges_share": sum(decision.placement == "static" for decision in weights) / len(weights),
            "dynamic": {
                decision.tensor.name: decision.reason for decision in decisions if decision.placement == "dynamic"
            },
        }
        sent = [decision.edge({"batch": batch}) for decision in decisions if decision.tensor.source == WORKER]
        return [(edge.name, edge.source, edge.destination, edge.shape, edge.dtype, edge.static) for edge in sent]

    def steps(self, case: OwnCase, fixed: TensorChannel, varying: TensorChannel) -> list[int]:
        """Forward and backward passes; each gradient is sent as soon as it is computed. Returns checksums of the sent
        tensors, in the order of the channels' edges."""
        sums = []
        hooks = [
            self._send_gradient(parameter, edge, fixed)
            for parameter, edge in zip(self.module.parameters(), fixed.edges, strict=True)
        ]
        for step in timed_iterations(self.context, case.warmup, case.iterations):
            self.context.at(step, "forward and backward", SERVER)
            largest = int(case.options["batch"])
            inputs = self.random.standard_normal((largest - step % SPREAD, *self.network.input_shape), np.float32)
            self.sites.begin()
            self.handles: list[Handle] = []
            self.sent: dict[Edge, Array] = {}
            start = now()
            with self.sites:
                outputs = self.module(self.torch.from_numpy(inputs))
                activation = varying.edges[0]
                self.sites.place(outputs, self._outgoing(activation, varying))
                self.handles.append(varying.send(activation, self.sent[activation]))
                outputs.square().mean().backward()
            end = now()
            for handle in self.handles:
                handle.wait()
            births = self.sites.births
            self.context.recorder.add("born_placed", step, start, end, value=births.placed)
            self.context.recorder.add("born_copied", step, start, end, births.copied_bytes, births.copied)
            sums += [zlib.crc32(np.ascontiguousarray(self.sent[edge]).data) for edge in (*varying.edges, *fixed.edges)]
        for hook in hooks:
            hook.remove()
        return sums

    def _outgoing(self, edge: Edge, channel: TensorChannel) -> Callable[[tuple[int, ...]], Array]:
        """A function that returns the send buffer of the edge for a tensor's shape."""

        def memory(shape: tuple[int, ...]) -> Array:
            self.sent[edge] = channel.outgoing(edge, None if edge.static else shape)
            return self.sent[edge]

        return memory

    def _send_gradient(self, parameter: Any, edge: Edge, channel: TensorChannel) -> Any:
        memory = self._outgoing(edge, channel)

        def ready(parameter: Any) -> None:
            self.sites.place(parameter.grad, memory)
            parameter.grad = None
            self.handles.append(channel.send(edge, self.sent[edge]))

        return parameter.register_post_accumulate_grad_hook(ready)


def served(torch: Any, network: Network) -> Any:
    """The network followed by the server's operation, without memory."""
    from scaleproof.frameworks.torch.torch_model import module_of

    class Served(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.network = module_of(network)

        def forward(self, x: Any) -> Any:
            return self.network(x).exp()

    return Served()
