"""torch.distributed with the UCC backend, collectives over UCX; few builds of torch have it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scaleproof.spec.plugins import MESSAGE_MAILBOX, TransportPlugin
from scaleproof.transports._torch_distributed import TorchDistributed, lacking

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class Ucc(TorchDistributed):
    """Works on the arrays' own memory; UCX chooses the path."""

    BACKEND = "ucc"
    DTYPES = frozenset({"float32", "float64", "int8", "uint8", "int32", "int64"})
    PATH = "library's choice"

    def prepare(self, context: RankContext) -> None:
        """Restrict UCX to the case's interface and the memory of this machine."""
        os.environ["UCX_NET_DEVICES"] = context.case.interface


def why_not() -> str:
    """Reason why UCC cannot be used here; empty if it can."""
    return lacking("ucc", "UCC")


PLUGIN = TransportPlugin(
    name="ucc",
    summary="torch.distributed with UCC",
    implementation=Ucc,
    requires=("torch",),
    needs_framework="torch",
    probe=why_not,
    advice="build torch from source with USE_UCC=1 beside UCX and UCC; without that use transport 'ucx'",
    axis="UCC",
    mailbox=MESSAGE_MAILBOX,
    stated_costs="ucc.costs.yaml",
    polls=True,
)
