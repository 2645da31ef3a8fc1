"""Images per second by the method of Horovod's synthetic benchmarks, reimplemented: rank 0 times rounds of steps,
averages the rates of the rounds, and multiplies by the number of ranks. Horovod's DistributedOptimizer exchanges the
gradients.

Options: those of the network, and `rounds`; `iterations`: the steps of all rounds. Event `rate` (rank 0): the rate of
all ranks by this method. Source of the method: horovod v0.28.1,
examples/pytorch/pytorch_synthetic_benchmark.py.
"""

from __future__ import annotations

import statistics

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import leave
from scaleproof.spec import registry

PRELOAD = ("torch", "suite_programs.network")


def run(context: RankContext) -> None:
    """Trains; every rank also records steps, so that the rate of the same launch can be computed in both ways."""
    import torch
    from suite_programs import network

    net = network.network(context)
    context.at(-1, "connect")
    transport = registry.load("transport", "horovod").connect(context)
    try:
        import horovod.torch as hvd

        optimiser = torch.optim.SGD(
            net.module.parameters(), lr=net.case.learning_rate, momentum=net.case.momentum, fused=True
        )
        optimiser = hvd.DistributedOptimizer(optimiser, named_parameters=net.module.named_parameters())
        hvd.broadcast_parameters(net.module.state_dict(), root_rank=0)
        ends: list[int] = []

        def one_step(step: int) -> None:
            if step == net.case.warmup:
                ends.append(now())
            optimiser.zero_grad()
            network.forward_backward(context, step, net, net.module)
            optimiser.step()
            ends.append(now())

        network.timed_steps(context, net, one_step, transport.barrier)
        if context.rank == 0:
            _report(context, ends[net.case.warmup :], net.case.minibatch // net.case.ranks)
        network.same_everywhere(context, net.module)
        transport.barrier()
    finally:
        leave(context, transport)


def _report(context: RankContext, ends: list[int], batch: int) -> None:
    """`ends`: the start of the first timed step and the end of each, in ns."""
    per_round = (len(ends) - 1) // int(context.case.options["rounds"])
    bounds = ends[::per_round]
    rates = [batch * per_round / ((after - before) / 1e9) for before, after in zip(bounds, bounds[1:], strict=False)]
    moment = now()
    context.recorder.add("rate", 0, moment, moment, value=statistics.mean(rates) * context.world_size)
