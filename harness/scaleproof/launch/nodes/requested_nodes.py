"""Which nodes a person or a profile requests: this machine alone, the nodes of a Slurm job, or a list of hosts."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scaleproof.core.record_schema import Job
from scaleproof.launch.nodes import host_list, slurm
from scaleproof.launch.nodes.host_list import Host
from scaleproof.launch.nodes.ssh import is_here, remote_shell
from scaleproof.spec.errors import SpecError
from scaleproof.spec.registry import nearest

HOSTS, LAUNCHER, INTERFACE, RENDEZVOUS = (
    "SCALEPROOF_HOSTS",
    "SCALEPROOF_LAUNCHER",
    "SCALEPROOF_INTERFACE",
    "SCALEPROOF_RENDEZVOUS",
)
"""Variables that stand for options of `scaleproof run`, so that a workflow's profile can set them."""
Inner = Literal["fork", "mpirun", "torchrun"]
LAUNCHERS = ("local", "srun", "ssh", "mpirun", "torchrun")
_INNER: dict[str, Inner] = {"mpirun": "mpirun", "torchrun": "torchrun"}
RENDEZVOUSES = ("static", "c10d")


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Options of a person or a profile; empty: none."""

    hosts: str = ""
    launcher: str = ""
    interface: str = ""
    rendezvous: str = ""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Nodes to run on. `starter` starts an agent on each of them; `inner` is how an agent starts its ranks where the
    case does not ask for mpirun."""

    kind: Literal["slurm", "hosts"]
    cluster: str
    hosts: tuple[Host, ...]
    starter: Literal["srun", "ssh"]
    inner: Inner = "fork"
    job: Job | None = None
    interface: str = ""
    """As requested; empty: the one that has the address of the node's name."""
    rendezvous: str = "static"
    """Of torchrun."""

    @property
    def launcher(self) -> str:
        """For the record."""
        return self.starter if self.inner == "fork" else self.inner


def options(allocation: Allocation) -> list[str]:
    """What a person adds to `scaleproof run` for the same nodes; inside a Slurm job its nodes are known."""
    hosts = ",".join(host.name if host.slots is None else f"{host.name}:{host.slots}" for host in allocation.hosts)
    named = {
        "--hosts": hosts if allocation.kind == "hosts" else "",
        "--launcher": allocation.inner if allocation.inner != "fork" else "",
    }
    named |= {
        "--interface": allocation.interface,
        "--rendezvous": allocation.rendezvous if allocation.inner == "torchrun" else "",
    }
    return [word for option, value in named.items() if value for word in (option, value)]


def requested_allocation(options: NodeOptions, variables: Mapping[str, str]) -> Allocation | None:
    """The allocation; None: this machine alone. An option goes before its variable, hosts before Slurm. SpecError for
    what cannot be."""
    launcher = _one_of(options.launcher or variables.get(LAUNCHER, ""), LAUNCHERS, "launcher")
    named = options.hosts or variables.get(HOSTS, "")
    rendezvous = (
        _one_of(options.rendezvous or variables.get(RENDEZVOUS, ""), RENDEZVOUSES, "rendezvous of torchrun") or "static"
    )
    if launcher == "local":
        if named:
            raise SpecError(
                f"--hosts {named}: launcher 'local' starts ranks on this machine alone; leave one of both out"
            )
        return None
    inner = _INNER.get(launcher, "fork")
    interface = options.interface or variables.get(INTERFACE, "")
    if inner != "fork":
        _need(str(Path(sys.executable).parent / inner), f"launcher {inner}", "type `make env`")
    if named and launcher == "srun":
        raise SpecError(f"--hosts {named}: launcher 'srun' takes the nodes of the Slurm job; leave one of both out")
    if named:
        _need(
            remote_shell()[0],
            "launcher ssh",
            "install an OpenSSH client, or name another remote shell with SCALEPROOF_SSH",
        )
        return Allocation("hosts", "", host_list.parse(named), "ssh", inner, None, interface, rendezvous)
    job = slurm.job(variables)
    if job is None:
        if launcher:
            where = (
                "outside of a Slurm job (no SLURM_JOB_ID)"
                if launcher == "srun"
                else "without nodes: neither --hosts nor a Slurm job"
            )
            raise SpecError(
                f"launcher {launcher!r} {where}; start it by sbatch or salloc, or name nodes with --hosts a:4,b:4"
            )
        return None
    hosts = slurm.hosts_of(job)
    if (
        len(hosts) == 1
        and not launcher
        and (is_here(hosts[0].name) or variables.get("SLURMD_NODENAME") == hosts[0].name)
    ):
        return None  # this machine, which Slurm gave; salloc may stay on the login node
    _need("srun", "launcher srun", "install Slurm's client programs")
    return Allocation(
        "slurm",
        slurm.cluster(variables),
        hosts,
        "ssh" if launcher == "ssh" else "srun",
        inner,
        slurm.job_of(job),
        interface,
        rendezvous,
    )


def _one_of(name: str, known: tuple[str, ...], what: str) -> str:
    if name and name not in known:
        raise SpecError(f"unknown {what} {name!r}; {nearest(name, list(known))}")
    return name


def _need(program: str, what: str, advice: str) -> None:
    if shutil.which(program) is None:
        raise SpecError(f"{what}: no program {program!r} here; {advice}")
