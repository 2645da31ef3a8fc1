"""torch.distributed with the NCCL backend: one GPU per rank, through which NumPy arrays are staged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from scaleproof.core.transport_errors import TransportError
from scaleproof.spec.plugins import TransportPlugin
from scaleproof.transports._torch_distributed import TorchDistributed, lacking

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class Nccl(TorchDistributed):
    """Every call copies its arrays to the rank's GPU and its result back; the copies are part of the call's time."""

    BACKEND = "nccl"
    DTYPES = frozenset({"float16", "float32", "float64", "int8", "uint8", "int32", "int64"})
    PATH = "library's choice"

    def version(self) -> str:
        """The version that torch was built with."""
        return "NCCL " + ".".join(str(part) for part in self._torch.cuda.nccl.version())

    def prepare(self, context: RankContext) -> None:
        """NCCL's sockets use the case's interface; every rank of a node uses a different GPU, which NCCL requires."""
        os.environ["NCCL_SOCKET_IFNAME"] = context.case.interface
        first = next(
            rank
            for rank in range(context.world_size)
            if rank * context.case.nodes // context.world_size == self._node(context)
        )
        gpus, local_rank = self._torch.cuda.device_count(), context.rank - first
        if local_rank >= gpus:
            raise TransportError(
                f"NCCL needs a GPU for every rank of a node; "
                f"rank {context.rank} is number {local_rank + 1} here, and there are {gpus}"
            )
        self._torch.cuda.set_device(local_rank)

    def lend(self, tensor: Any) -> Any:
        """A copy on the GPU."""
        return tensor.cuda()

    def _node(self, context: RankContext) -> int:
        return context.rank * context.case.nodes // context.world_size


def why_not() -> str:
    """Reason why NCCL cannot be used here; empty if it can."""
    import torch

    if reason := lacking("nccl", "NCCL"):
        return reason
    return "" if torch.cuda.is_available() else "there is no GPU that torch can use"


PLUGIN = TransportPlugin(
    name="nccl",
    summary="torch.distributed with NCCL, arrays staged through a GPU a rank",
    implementation=Nccl,
    requires=("torch",),
    needs_framework="torch",
    probe=why_not,
    advice="on a machine with a GPU for every rank install a torch with CUDA (https://pytorch.org/get-started); its "
    "wheels hold NCCL",
    axis="NCCL",
    no_mailbox="a receive that is posted holds back every later send to the same rank",
    within_node="memory",
    stated_costs="nccl.costs.yaml",
    calls_between_gpus=True,
)
