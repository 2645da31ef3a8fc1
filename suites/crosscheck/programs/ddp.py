"""The network of `train` under torch's DistributedDataParallel on Gloo, with the bucket size of our strategy.

Option `bucket_view` 1: gradients are views of the buckets (no copy back), as in our strategies; 0: torch's default.
"""

from __future__ import annotations

import gc
import os
from datetime import timedelta

from scaleproof.core.context import RankContext

PRELOAD = ("torch", "torch._dynamo", "torch.distributed", "torch.nn.parallel", "suite_programs.network")
"""DDP imports torch._dynamo when it is made. The supervisor imports this file too, and needs none of them."""
TIMEOUT = timedelta(seconds=120)


def run(context: RankContext) -> None:
    """Trains; every rank records steps and their parts."""
    import torch.distributed

    os.environ["GLOO_SOCKET_IFNAME"] = context.case.interface
    store = torch.distributed.FileStore(str(context.folder / "ddp.store"), context.world_size)
    context.at(-1, "connect")
    torch.distributed.init_process_group(
        "gloo", store=store, rank=context.rank, world_size=context.world_size, timeout=TIMEOUT
    )
    _train(context)
    # DDP's reducer also refers to the group. As the last one it would join Gloo's threads while holding the
    # interpreter's lock, for which such a thread may be waiting. So the replica is deleted first. After a failure the
    # group stays, and the end of the rank closes its sockets.
    gc.collect()
    torch.distributed.destroy_process_group()


def _train(context: RankContext) -> None:
    import torch
    from suite_programs import network

    net = network.network(context)
    view = bool(context.case.options["bucket_view"])
    replica = torch.nn.parallel.DistributedDataParallel(
        net.module, bucket_cap_mb=net.case.value("strategy.bucket_mib", 25.0), gradient_as_bucket_view=view
    )
    optimiser = torch.optim.SGD(
        net.module.parameters(), lr=net.case.learning_rate, momentum=net.case.momentum, fused=True
    )

    def one_step(step: int) -> None:
        network.forward_backward(context, step, net, replica)
        with context.recorder.span("update", step):
            optimiser.step()
            optimiser.zero_grad()

    network.timed_steps(context, net, one_step, torch.distributed.barrier)
    network.same_everywhere(context, net.module)
    context.facts["ddp"] = {
        "bucket_mib": net.case.value("strategy.bucket_mib", 25.0),
        "bucket_view": view,
        "torch": torch.__version__,
    }
