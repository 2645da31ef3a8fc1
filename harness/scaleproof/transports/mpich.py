"""MPICH through mpi4py, in an environment of its own: its wheel and Open MPI's each bring a libmpi and an mpiexec, so
they never share one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.core.transport_errors import TransportError
from scaleproof.paths import PROJECT
from scaleproof.spec.plugins import MESSAGE_MAILBOX, TransportPlugin
from scaleproof.transports import mpi

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

HOME = "SCALEPROOF_MPICH"
"""Environment variable with the path of an environment other than the default one."""
STARTED = "PMI_RANK"
"""Environment variable that mpiexec sets in each of its processes."""
_REPLY_BYTES = 1024
"""Upper limit on the size of a reply of PMI-1."""
SEGMENTS = "/dev/shm/mpich_shm_"
SETTINGS = ("UCX_TLS", "UCX_NET_DEVICES", "MPIR_CVAR_CH4_NETMOD", "MPIR_CVAR_NOLOCAL")
ON_ONE_MACHINE = {"UCX_TLS": "self,sm"}
"""Between processes of a machine MPICH copies through shared memory; with UCX's other transports loaded every rank
would listen on all interfaces."""
_NETMOD = "ucx"
"""The wheel's default."""
_OVER_TCP = {"UCX_TLS": "self,tcp", "MPIR_CVAR_NOLOCAL": "1"}


def between_nodes(interface: str) -> dict[str, str]:
    """Settings for TCP on one interface, also between two ranks of one node, as for transport `mpi`."""
    return {**_OVER_TCP, "UCX_NET_DEVICES": interface}


def home() -> Path:
    """The environment with MPICH, mpi4py and everything else that a rank imports."""
    return Path(os.environ.get(HOME) or PROJECT / ".venv-mpich")


def why_not() -> str:
    """Reason why MPICH cannot start ranks here; empty if it can."""
    missing = [name for name in ("mpiexec", "python") if not (home() / "bin" / name).exists()]
    return f"no environment with MPICH: {home()} has no {' and no '.join(missing)}" if missing else ""


def segments() -> set[Path]:
    """MPICH's shared-memory files that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {
        Path(path)
        for line in lines
        if (path := line.partition("/")[1] + line.partition("/")[2]).startswith(SEGMENTS) and Path(path).exists()
    }


class Mpich(mpi.Mpi):
    """Transport `mpi` with another library."""

    def __init__(self, context: RankContext) -> None:
        super().__init__(context)
        # All ranks have mapped the shared segments and no longer need their names, which would stay in /dev/shm if a
        # rank were killed.
        self._world.Barrier()
        for segment in segments():
            segment.unlink(missing_ok=True)

    def _check_launcher(self) -> None:
        if STARTED not in os.environ:
            raise TransportError("transport 'mpich' needs ranks that MPICH's mpiexec started: use launcher 'mpich'")

    def _settings(self) -> dict[str, str]:
        return {name: os.environ[name] for name in SETTINGS if name in os.environ}

    def _name(self) -> str:
        return f"MPICH {self._mpi.Get_library_version().split()[2]}, mpi4py {mpi.mpi4py_version()}"

    def _path(self) -> mpi.Path:
        settings = {"MPIR_CVAR_CH4_NETMOD": _NETMOD} | self._settings()
        settings.pop("UCX_NET_DEVICES", None)  # names the device, not the kind of path
        if settings.pop("MPIR_CVAR_CH4_NETMOD") != _NETMOD:
            return "library's choice"
        if settings == ON_ONE_MACHINE:
            return "shared memory"
        return "socket" if settings == _OVER_TCP else "library's choice"

    def close(self) -> None:
        """See Mpi.close; also tells mpiexec that this process has finished. MPICH does that in a C exit handler, which
        our ranks skip, and mpiexec would treat their end as a failure and kill the other ranks."""
        open_before = not self._mpi.Is_finalized()
        super().close()
        if open_before and self._mpi.Is_finalized():
            channel = int(os.environ["PMI_FD"])
            os.write(channel, b"cmd=finalize\n")
            os.read(channel, _REPLY_BYTES)


PLUGIN = TransportPlugin(
    name="mpich",
    summary="MPICH through mpi4py, in an environment of its own",
    implementation=Mpich,
    probe=why_not,
    advice="type `python3 -m tools.setup mpich`",
    axis="MPI",
    launcher="mpich",
    progress="caller",
    moves_in_wait=True,
    mailbox=MESSAGE_MAILBOX,
    within_node="memory",
    stated_costs="mpich.costs.yaml",
    polls=True,
)
