"""The nodes that the user or a workflow's profile requests: this machine alone, the nodes of a Slurm job, or a list of
hosts."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from scaleproof.core.node_schema import Job
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
"""Environment variables in place of options of `scaleproof run`, so that a workflow's profile can set them."""
Inner = Literal["fork", "mpirun", "torchrun"]
LAUNCHERS = ("local", "srun", "ssh", "mpirun", "torchrun")
_INNER: dict[str, Inner] = {"mpirun": "mpirun", "torchrun": "torchrun"}
RENDEZVOUSES = ("static", "c10d")


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Options of `scaleproof run`; empty: not set."""

    hosts: str = ""
    launcher: str = ""
    interface: str = ""
    rendezvous: str = ""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Nodes to run on. `starter`: how agents are started on them; `inner`: how an agent starts its ranks where the case
    does not request mpirun."""

    kind: Literal["slurm", "hosts"]
    cluster: str
    hosts: tuple[Host, ...]
    starter: Literal["srun", "ssh"]
    inner: Inner = "fork"
    job: Job | None = None
    interface: str = ""
    """The requested interface; empty: the one that has the address of the node's name."""
    rendezvous: str = "static"
    """The rendezvous of torchrun."""

    @property
    def launcher(self) -> str:
        """The launcher that the record names."""
        return self.starter if self.inner == "fork" else self.inner


def options(allocation: Allocation) -> list[str]:
    """Options of `scaleproof run` that request the same nodes; inside a Slurm job its nodes need none."""
    hosts = ",".join(host.name if host.slots is None else f"{host.name}:{host.slots}" for host in allocation.hosts)
    named = {
        "--hosts": hosts if allocation.kind == "hosts" else "",
        "--launcher": allocation.inner if allocation.inner != "fork" else "",
    }
    named |= {
        "--interface": allocation.interface,
        "--rendezvous": allocation.rendezvous if allocation.inner == "torchrun" else "",
    }
    return [argument for option, value in named.items() if value for argument in (option, value)]


def requested_allocation(options: NodeOptions, variables: Mapping[str, str]) -> Allocation | None:
    """The requested allocation; None: this machine alone. An option takes precedence over its variable, a list of hosts
    over the nodes of a Slurm job. SpecError for a request that cannot be met."""
    launcher = _checked(options.launcher or variables.get(LAUNCHER, ""), LAUNCHERS, "launcher")
    hosts = options.hosts or variables.get(HOSTS, "")
    rendezvous = options.rendezvous or variables.get(RENDEZVOUS, "")
    rendezvous = _checked(rendezvous, RENDEZVOUSES, "rendezvous of torchrun") or "static"
    if launcher == "local":
        if hosts:
            raise SpecError(
                f"--hosts {hosts}: launcher 'local' starts ranks on this machine alone; leave one of both out"
            )
        return None
    inner = _INNER.get(launcher, "fork")
    if inner != "fork":
        _need(str(Path(sys.executable).parent / inner), f"launcher {inner}", "type `make env`")
    allocation = _of_host_list(hosts, launcher) if hosts else _of_slurm_job(launcher, variables)
    if allocation is None:
        return None
    interface = options.interface or variables.get(INTERFACE, "")
    return replace(allocation, inner=inner, interface=interface, rendezvous=rendezvous)


def _of_host_list(hosts: str, launcher: str) -> Allocation:
    if launcher == "srun":
        raise SpecError(f"--hosts {hosts}: launcher 'srun' takes the nodes of the Slurm job; leave one of both out")
    advice = "install an OpenSSH client, or name another remote shell with SCALEPROOF_SSH"
    _need(remote_shell()[0], "launcher ssh", advice)
    return Allocation("hosts", "", host_list.parse(hosts), "ssh")


def _of_slurm_job(launcher: str, variables: Mapping[str, str]) -> Allocation | None:
    """None outside of a Slurm job, and where the job has only this machine."""
    job = slurm.job(variables)
    if job is None and launcher:
        missing = "without nodes: neither --hosts nor a Slurm job"
        if launcher == "srun":
            missing = "outside of a Slurm job (no SLURM_JOB_ID)"
        raise SpecError(
            f"launcher {launcher!r} {missing}; start it by sbatch or salloc, or name nodes with --hosts a:4,b:4"
        )
    if job is None:
        return None
    hosts = slurm.hosts_of(job)
    # Not by the number of nodes alone: salloc may stay on the login node, and then the job's only node is another one.
    on_this_machine = is_here(hosts[0].name) or variables.get("SLURMD_NODENAME") == hosts[0].name
    if len(hosts) == 1 and not launcher and on_this_machine:
        return None
    _need("srun", "launcher srun", "install Slurm's client programs")
    starter: Literal["srun", "ssh"] = "ssh" if launcher == "ssh" else "srun"
    return Allocation("slurm", slurm.cluster(variables), hosts, starter, job=slurm.job_of(job))


def _checked(name: str, names: tuple[str, ...], kind: str) -> str:
    if name and name not in names:
        raise SpecError(f"unknown {kind} {name!r}; {nearest(name, list(names))}")
    return name


def _need(program: str, user: str, advice: str) -> None:
    if shutil.which(program) is None:
        raise SpecError(f"{user}: no program {program!r} here; {advice}")
