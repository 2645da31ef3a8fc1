"""gRPC requests tensors, one-sided writes into shared memory deliver them."""

from __future__ import annotations

from scaleproof.transports.grpc_plus.grpc_plus import GrpcPlus


class GrpcShm(GrpcPlus):
    """Tensors travel over transport `shm`."""

    DEVICE = "shm"
