"""gRPC requests tensors, one-sided writes into shared memory deliver them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from scaleproof.spec.plugins import MESSAGE_MAILBOX, Options, TransportPlugin
from scaleproof.transports.grpc_plus.grpc_plus import WINDOW_MIB, GrpcPlus

if TYPE_CHECKING:
    from scaleproof.spec.case import AnyCase


class GrpcShmOptions(Options):
    """Options of this transport."""

    window_mib: float = Field(
        WINDOW_MIB, gt=0, description="Memory of each rank that peers deliver tensors into without a copy, MiB."
    )


class GrpcShm(GrpcPlus):
    """Tensors travel over transport `shm`."""

    DEVICE = "shm"

    @staticmethod
    def window_mib(case: AnyCase) -> float:
        """See GrpcPlus.window_mib."""
        return float(case.value("transport.window_mib", WINDOW_MIB))


PLUGIN = TransportPlugin(
    name="grpc+shm",
    summary="gRPC asks, one-sided writes into shared memory deliver",
    implementation=GrpcShm,
    point_to_point=True,
    mailbox=MESSAGE_MAILBOX,
    requires=("grpc",),
    options=GrpcShmOptions,
    axis="gRPC+shared-memory",
    own_memory=True,
    one_node=True,
    within_node="memory",
    stated_costs="grpc_shm.costs.yaml",
    polls=True,
)
