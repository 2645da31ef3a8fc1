"""torch.distributed with the Gloo backend, on the arrays' own memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scaleproof.transports._torch_distributed import TorchDistributed

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class Gloo(TorchDistributed):
    """Gloo's own sockets listen on the fabric's interface only."""

    BACKEND = "gloo"
    DTYPES = frozenset(
        {"float16", "float32", "float64", "int8", "uint8", "int32", "int64"}
    )  # 16-bit integers it refuses
    PATH = "socket"

    def version(self) -> str:
        """Built into torch, without a version of its own."""
        return "Gloo"

    def prepare(self, context: RankContext) -> None:
        """Which interface its sockets use."""
        os.environ["GLOO_SOCKET_IFNAME"] = context.case.interface
