"""gRPC requests tensors, one-sided RDMA writes deliver them."""

from __future__ import annotations

from scaleproof.transports.grpc_plus.grpc_plus import GrpcPlus


class GrpcRdma(GrpcPlus):
    """Tensors travel over transport `rdma`."""

    DEVICE = "rdma"
