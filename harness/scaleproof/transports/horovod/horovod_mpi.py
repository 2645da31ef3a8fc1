"""Horovod over MPI: MPI agrees on what is ready and moves it. The ranks are those that mpirun started."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Literal

from scaleproof.core.transport_errors import TransportError
from scaleproof.spec.plugins import TransportPlugin
from scaleproof.transports.horovod.framework_bindings import Binding, translated_errors
from scaleproof.transports.horovod.horovod_transport import HorovodOptions, HorovodTransport, check_fusion
from scaleproof.transports.mpi import path_of, require_mpirun, settings

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class HorovodMpi(HorovodTransport):
    """Its background thread calls MPI; the thread that starts a collective never does."""

    OPERATIONS = "MPI"

    def __init__(self, context: RankContext) -> None:
        require_mpirun("horovod-mpi")
        super().__init__(context)
        context.facts["mpi"] = settings()

    def _path(self) -> Literal["shared memory", "socket", "library's choice"]:
        return path_of(settings())

    def _join(self, context: RankContext, binding: Binding) -> None:
        os.environ.update({"HOROVOD_CONTROLLER": "mpi", "HOROVOD_CPU_OPERATIONS": "MPI"})
        context.post.wait()
        with translated_errors():
            binding.init()
        context.post.stop_waiting()
        if (counted := binding.rank_and_size()) != (self.rank, self.world_size):
            raise TransportError(
                f"Horovod counts this rank as {counted[0]} of {counted[1]}, "
                f"the launch as {self.rank} of {self.world_size}"
            )

    def close(self) -> None:
        """See Transport.close; a rank that ends because of an error skips it: MPI_Finalize would wait for all ranks,
        which mpirun ends."""
        if sys.exc_info()[0] is None:
            super().close()


PLUGIN = TransportPlugin(
    name="horovod-mpi",
    summary="Horovod over Open MPI",
    implementation=HorovodMpi,
    requires=("horovod", "mpi4py"),
    needs_framework="torch",
    options=HorovodOptions,
    check=check_fusion,
    axis="No-gRPC:Horovod-MPI",
    sends=False,
    no_mailbox="it has no sends and receives",
    launcher="mpirun",
    within_node="memory",
    stated_costs="horovod_mpi.costs.yaml",
)
