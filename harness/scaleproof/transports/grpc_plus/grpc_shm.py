"""gRPC requests tensors, one-sided writes into shared memory deliver them."""

from __future__ import annotations

from scaleproof.spec.plugins import TransportPlugin
from scaleproof.transports.grpc_plus.grpc_plus import GrpcPlus


class GrpcShm(GrpcPlus):
    """Tensors travel over transport `shm`."""

    DEVICE = "shm"


PLUGIN = TransportPlugin(
    name="grpc+shm",
    summary="gRPC asks, one-sided writes into shared memory deliver",
    implementation=GrpcShm,
    point_to_point=True,
    requires=("grpc",),
    axis="gRPC+shared-memory",
    own_memory=True,
    one_node=True,
    within_node="memory",
    stated_costs="memory",
)
