"""torch.distributed with the MPI backend, which exists only in a torch built from source with an MPI. mpirun starts the
ranks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from scaleproof.spec.plugins import MESSAGE_MAILBOX, TransportPlugin
from scaleproof.transports._torch_distributed import TorchDistributed, lacking
from scaleproof.transports.mpi import DTYPES, require_mpirun, settings

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class TorchMpi(TorchDistributed):
    """MPI knows its ranks, so no store is needed."""

    BACKEND = "mpi"
    DTYPES = DTYPES - {"int16"}
    PATH = "library's choice"

    def prepare(self, context: RankContext) -> None:
        """Check that mpirun started this rank, and record Open MPI's parameters."""
        require_mpirun("torch-mpi")
        context.facts["mpi"] = settings()

    def join(self, context: RankContext) -> None:
        """See TorchDistributed.join."""
        self._distributed.init_process_group("mpi")

    def close(self) -> None:
        """See Transport.close; a rank that ends because of an error skips MPI_Finalize, which waits for all ranks."""
        if sys.exc_info()[0] is None:
            super().close()


def why_not() -> str:
    """Reason why the MPI backend cannot be used here; empty if it can."""
    reason = lacking("mpi", "MPI")
    return f"{reason}, as all of its wheels are" if reason else ""


PLUGIN = TransportPlugin(
    name="torch-mpi",
    summary="torch.distributed with MPI",
    implementation=TorchMpi,
    requires=("torch",),
    needs_framework="torch",
    probe=why_not,
    advice="build torch from source with USE_MPI=1 beside an Open MPI; without that use transport 'mpi'",
    axis="MPI",
    launcher="mpirun",
    mailbox=MESSAGE_MAILBOX,
    within_node="memory",
    stated_costs="torch_mpi.costs.yaml",
    polls=True,
)
