"""Mini-batches of the paper's six models as traffic: every tensor's gradient goes from a worker (rank 0) to a parameter
server (rank 1) and comes back as the new parameter; the worker sleeps for as long as the model computes. Mechanisms
take turns within a launch, so that each gain is one of the same minutes.

Tensors and compute times are smaller by the same factor, option `shrink`, which keeps the ratio of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
from suite_programs import tuning

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import sleep_for_compute, timed_iterations, timed_region
from scaleproof.remote.tensor_channel import Edge, Mechanism, TensorChannel, shared_channel
from scaleproof.spec import registry
from scaleproof.spec.case import OwnCase

MECHANISMS: tuple[Mechanism, ...] = ("rpc", "copy", "zero_copy")
WORKER, SERVER = 0, 1


def run(context: RankContext) -> None:
    """See the module. Options: `slept: 1`; workload, shrink, compute_ms (of the whole model, before it is shrunk)."""
    case = context.case
    assert isinstance(case, OwnCase) and case.transport is not None
    tuning.apply(context, case)
    transport = registry.load("transport", case.transport).connect(context)
    with timed_region(context, transport), ExitStack() as stack:
        every = edges(str(case.options["workload"]), int(case.options["shrink"]))
        channels = {
            mechanism: stack.enter_context(shared_channel(mechanism, transport, every, context))
            for mechanism in MECHANISMS
        }
        pause_s = float(case.options["compute_ms"]) / 1e3 / int(case.options["shrink"])
        sent = sum(edge.nbytes for edge in every)
        order = np.random.default_rng([context.seed, 5])
        for step in timed_iterations(context, case.warmup, case.iterations):
            for mechanism in order.permutation(list(MECHANISMS)).tolist():
                context.at(step, f"mini-batch by {mechanism}", 1 - context.rank)
                start = now()
                _minibatch(context, channels[mechanism], step, pause_s)
                if context.rank == WORKER:
                    context.recorder.add(f"minibatch_{mechanism}", step, start, now(), sent)
        for mechanism, channel in channels.items():
            _verify(context, mechanism, channel, case.warmup + case.iterations)


def edges(workload: str, shrink: int) -> list[Edge]:
    """Gradients in the order in which a backward pass makes them, then parameters."""
    shapes = registry.load("workload", workload)(None, 1.0).parameter_shapes
    sizes = [(name, (max(int(np.prod(shape)) // shrink, 1),)) for name, shape in shapes]
    gradients = [Edge(f"{name}.gradient", WORKER, SERVER, shape) for name, shape in reversed(sizes)]
    return gradients + [Edge(name, SERVER, WORKER, shape) for name, shape in sizes]


def _minibatch(context: RankContext, channel: TensorChannel, step: int, pause_s: float) -> None:
    """One step on either side. The server computes nothing."""
    out = [edge for edge in channel.edges if edge.source == context.rank]
    back = [edge for edge in channel.edges if edge.destination == context.rank]
    if context.rank == WORKER:
        sleep_for_compute(context, pause_s)
        _send(channel, out, step)
        _receive(channel, back)
    else:
        _receive(channel, back)
        _send(channel, out, step)


def _send(channel: TensorChannel, edges: Sequence[Edge], step: int) -> None:
    handles = []
    for edge in edges:
        tensor = channel.outgoing(edge)
        tensor[0] = tensor[-1] = step
        handles.append(channel.send(edge, tensor))
    for handle in handles:
        handle.wait()


def _receive(channel: TensorChannel, edges: Sequence[Edge]) -> None:
    for arrival in [(edge, channel.recv(edge)) for edge in edges]:
        arrival[1].wait()
        channel.release(arrival[0])


def _verify(context: RankContext, mechanism: str, channel: TensorChannel, salt: int) -> None:
    """One more exchange, in which each tensor is filled with a different number and compared in full."""
    wrong = 0
    for number, edge in enumerate(channel.edges):
        if edge.source == context.rank:
            tensor = channel.outgoing(edge)
            tensor.fill(number + salt)
            channel.send(edge, tensor).wait()
        else:
            wrong += int(np.count_nonzero(channel.recv(edge).wait() != number + salt))
            channel.release(edge)
    context.check(
        f"content.{mechanism}",
        not wrong,
        f"{wrong} elements differ" if wrong else f"{len(channel.edges)} tensors as sent",
    )
