"""gRPC requests tensors, Open MPI's sends and receives deliver them."""

from __future__ import annotations

from scaleproof.transports.grpc_plus.grpc_plus import GrpcPlus


class GrpcMpi(GrpcPlus):
    """Tensors travel over transport `mpi`."""

    DEVICE = "mpi"
