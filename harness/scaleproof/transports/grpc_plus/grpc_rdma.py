"""gRPC requests tensors, one-sided RDMA writes deliver them."""

from __future__ import annotations

from scaleproof.spec.plugins import TransportPlugin
from scaleproof.transports.grpc_plus.grpc_plus import GrpcPlus
from scaleproof.transports.verbs.rdma import RdmaOptions, pinned_bytes


class GrpcRdma(GrpcPlus):
    """Tensors travel over transport `rdma`."""

    DEVICE = "rdma"


PLUGIN = TransportPlugin(
    name="grpc+rdma",
    summary="gRPC asks, one-sided RDMA writes deliver",
    implementation=GrpcRdma,
    point_to_point=True,
    requires=("grpc", "pyverbs"),
    advice="type `apt-get install python3-pyverbs ibverbs-providers`, then `make env`",
    devices="/sys/class/infiniband",
    options=RdmaOptions,
    axis="gRPC+Verbs",
    own_memory=True,
    pinned_bytes=pinned_bytes,
    stated_costs="verbs",
)
