"""Ranks started by Open MPI's mpirun, with one parent process per rank."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.launch.launchers.launcher_contract import Launcher, scratch
from scaleproof.rank.process_lifetime import ending_with_this_process
from scaleproof.spec.plugins import LauncherPlugin


def options(ranks: int, folder: Path) -> list[str]:
    """Options of mpirun for so many ranks on this machine, not bound to cores, over shared memory whose backing files
    lie in `folder`."""
    # Without the tcp module no rank listens on a port; on one machine Open MPI uses shared memory anyway.
    path = ["--mca", "pml", "ob1", "--mca", "btl", "self,sm", "--mca", "btl_sm_backing_directory", str(folder)]
    return ["-n", str(ranks), "--oversubscribe", "--bind-to", "none", *path]


NODE_SHELL = "scaleproof.fabric.netns.node_shell"
"""Module of the harness in place of the remote shell between nodes of one coordinator."""


def options_over(hosts: Mapping[str, int], interface: str, agent: str = NODE_SHELL) -> list[str]:
    """Options of mpirun for several nodes over TCP on an interface. `hosts`: host to its number of ranks; `agent`: the
    module that is used as remote shell."""
    daemon_parameters = {
        "plm": "ssh",
        "plm_ssh_agent": f"{sys.executable} -m {agent}",
        "plm_ssh_no_tree_spawn": "1",
        "prte_if_include": interface,
    }
    path = ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", interface]
    ranks_of_hosts = ",".join(f"{host}:{ranks}" for host, ranks in hosts.items())
    of_daemons = [argument for name, value in daemon_parameters.items() for argument in ("--prtemca", name, value)]
    return ["-n", str(sum(hosts.values())), "--host", ranks_of_hosts, "--bind-to", "none", *of_daemons, *path]


def started(options: list[str], folder: Path | str) -> list[str]:
    """The command line of mpirun with the command that starts one rank. A `folder` that begins with $ is a variable,
    whose value differs between nodes."""
    program = Path(sys.executable).parent / "mpirun"
    parent = [sys.executable, "-m", "scaleproof.rank.fork_ranks", str(folder), "--rank-from", "OMPI_COMM_WORLD_RANK"]
    if isinstance(folder, str):
        parent = ["/bin/sh", "-c", " ".join(["exec", *parent, "--attended"])]
    return [str(program), *options, *parent]


class Mpirun(Launcher):
    """`mpirun` of this Python's environment. Its session and backing files lie in the scratch of the launch."""

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """mpirun, which ends with the supervisor; each of its processes forks the rank with its MPI rank."""
        ranks = int(launch_spec.case["ranks"])
        return ending_with_this_process(started(options(ranks, scratch(launch_spec.launch)), folder))

    def over_nodes(self, hosts: Mapping[str, int], interface: str, folder: Path) -> list[str]:
        """The command that the first of several nodes runs; it starts the ranks of all nodes."""
        return started(options_over(hosts, interface), folder)

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """Root is allowed: containers and continuous integration run as root."""
        return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpirun_problem() -> str:
    """Why the mpirun beside this Python cannot be used; empty when it can. No other mpirun is used."""
    program = Path(sys.executable).parent / "mpirun"
    if not program.exists():
        return f"no mpirun beside {sys.executable}"
    completed = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    first_line = ((completed.stdout + completed.stderr).strip().splitlines() or [""])[0]
    if completed.returncode == 0 and "Open MPI" in first_line:
        return ""
    return f"mpirun --version ended with {completed.returncode}: {first_line[:80]}"


PLUGIN = LauncherPlugin(
    name="mpirun",
    summary="ranks started by Open MPI's mpirun",
    implementation=Mpirun,
    requires=("mpi4py",),
    check_installation=mpirun_problem,
    process_per_rank=True,
)
