"""MPICH through mpi4py, in an environment of its own: its wheel and Open MPI's each bring a libmpi and an mpiexec, and
never share one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.core.transport_errors import TransportError
from scaleproof.paths import PROJECT
from scaleproof.transports import mpi

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

HOME = "SCALEPROOF_MPICH"
"""Variable that names another environment than the one that set-up makes."""
STARTED = "PMI_RANK"
"""What mpiexec gives each of its processes."""
_ACKNOWLEDGED = 1024
"""Bytes, more than the answer of PMI-1 has."""
SEGMENTS = "/dev/shm/mpich_shm_"
SETTINGS = ("UCX_TLS", "UCX_NET_DEVICES", "MPIR_CVAR_CH4_NETMOD", "MPIR_CVAR_NOLOCAL")
ON_ONE_MACHINE = {"UCX_TLS": "self,sm"}
"""Between processes of a machine MPICH copies through memory that they share; with UCX's other ways loaded every rank
would listen on all interfaces."""
_NETMOD = "ucx"
"""The first of those that the wheel is built with."""
_OVER_TCP = {"UCX_TLS": "self,tcp", "MPIR_CVAR_NOLOCAL": "1"}


def between_nodes(interface: str) -> dict[str, str]:
    """Over TCP on one interface, as transport `mpi` does it, also between two ranks of one node."""
    return {**_OVER_TCP, "UCX_NET_DEVICES": interface}


def home() -> Path:
    """The environment with MPICH, mpi4py and what else a rank imports."""
    return Path(os.environ.get(HOME) or PROJECT / ".venv-mpich")


def why_not() -> str:
    """Why no rank can be started by MPICH here; empty where they can."""
    missing = [name for name in ("mpiexec", "python") if not (home() / "bin" / name).exists()]
    return f"no environment with MPICH: {home()} has no {' and no '.join(missing)}" if missing else ""


def segments() -> set[Path]:
    """Files of MPICH's that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {
        Path(path)
        for line in lines
        if (path := line.partition("/")[1] + line.partition("/")[2]).startswith(SEGMENTS) and Path(path).exists()
    }


class Mpich(mpi.Mpi):
    """As `mpi`, with the other library."""

    def __init__(self, context: RankContext) -> None:
        super().__init__(context)
        # Once all ranks have mapped what they share its name is of no use any more; it would stay in /dev/shm when a
        # rank is killed.
        self._world.Barrier()
        for segment in segments():
            segment.unlink(missing_ok=True)

    def _need_starter(self) -> None:
        if STARTED not in os.environ:
            raise TransportError("transport 'mpich' needs ranks that MPICH's mpiexec started: use launcher 'mpich'")

    def _settings(self) -> dict[str, str]:
        return {name: os.environ[name] for name in SETTINGS if name in os.environ}

    def _name(self) -> str:
        return f"MPICH {self._mpi.Get_library_version().split()[2]}, mpi4py {mpi.mpi4py_version()}"

    def _path(self) -> mpi.Path:
        found = {"MPIR_CVAR_CH4_NETMOD": _NETMOD} | self._settings()
        found.pop("UCX_NET_DEVICES", None)  # says which, not how
        if found.pop("MPIR_CVAR_CH4_NETMOD") != _NETMOD:
            return "library's choice"
        return "shared memory" if found == ON_ONE_MACHINE else "socket" if found == _OVER_TCP else "library's choice"

    def close(self) -> None:
        """See Mpi.close; and tell mpiexec that this process is done. MPICH does so when C's exit handlers run, which a
        rank of ours ends without: mpiexec would take its end for a failure and kill the others."""
        open_before = not self._mpi.Is_finalized()
        super().close()
        if open_before and self._mpi.Is_finalized():
            channel = int(os.environ["PMI_FD"])
            os.write(channel, b"cmd=finalize\n")
            os.read(channel, _ACKNOWLEDGED)
