"""torch.distributed with the Gloo backend, on the arrays' own memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scaleproof.spec.plugins import TransportPlugin
from scaleproof.transports._torch_distributed import TorchDistributed

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class Gloo(TorchDistributed):
    """Gloo's own sockets listen on the fabric's interface only."""

    BACKEND = "gloo"
    # Gloo refuses 16-bit integers.
    DTYPES = frozenset({"float16", "float32", "float64", "int8", "uint8", "int32", "int64"})
    PATH = "socket"

    def version(self) -> str:
        """Gloo is built into torch and has no version of its own."""
        return "Gloo"

    def prepare(self, context: RankContext) -> None:
        """Restrict its sockets to the case's interface."""
        os.environ["GLOO_SOCKET_IFNAME"] = context.case.interface


PLUGIN = TransportPlugin(
    name="gloo",
    summary="torch.distributed with the Gloo backend",
    implementation=Gloo,
    requires=("torch",),
    needs_framework="torch",
    axis="GLOO",
    stated_costs="sockets",
    colour="purple",
    marker="D",
)
