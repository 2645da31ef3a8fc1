"""gRPC requests tensors, Open MPI's sends and receives deliver them."""

from __future__ import annotations

from scaleproof.spec.plugins import MESSAGE_MAILBOX, TransportPlugin
from scaleproof.transports.grpc_plus.grpc_plus import GrpcPlus


class GrpcMpi(GrpcPlus):
    """Tensors travel over transport `mpi`."""

    DEVICE = "mpi"


PLUGIN = TransportPlugin(
    name="grpc+mpi",
    summary="gRPC asks, Open MPI delivers",
    implementation=GrpcMpi,
    point_to_point=True,
    mailbox=MESSAGE_MAILBOX,
    requires=("grpc", "mpi4py"),
    axis="gRPC+MPI",
    launcher="mpirun",
    within_node="memory",
    stated_costs="grpc_mpi.costs.yaml",
    polls=True,
)
