"""gRPC requests tensors, one-sided RDMA writes deliver them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scaleproof.spec.plugins import MESSAGE_MAILBOX, TransportPlugin
from scaleproof.transports.grpc_plus.grpc_plus import WINDOW_MIB, GrpcPlus
from scaleproof.transports.verbs.rdma import RdmaOptions, pinned_bytes

if TYPE_CHECKING:
    from scaleproof.spec.case import AnyCase


class GrpcRdma(GrpcPlus):
    """Tensors travel over transport `rdma`."""

    DEVICE = "rdma"

    @staticmethod
    def window_mib(case: AnyCase) -> float:
        """Half of the region, if the case sets its size: the device's own messages need the rest."""
        region_mib = case.value("transport.region_mib")
        return region_mib / 2 if region_mib else WINDOW_MIB


PLUGIN = TransportPlugin(
    name="grpc+rdma",
    summary="gRPC asks, one-sided RDMA writes deliver",
    implementation=GrpcRdma,
    point_to_point=True,
    mailbox=MESSAGE_MAILBOX,
    requires=("grpc", "pyverbs"),
    advice="type `apt-get install python3-pyverbs ibverbs-providers`, then `make env`",
    devices="/sys/class/infiniband",
    options=RdmaOptions,
    axis="gRPC+Verbs",
    own_memory=True,
    pinned_bytes=pinned_bytes,
    stated_costs="grpc_rdma.costs.yaml",
    polls=True,
)
