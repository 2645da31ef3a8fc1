"""Ranks started by Open MPI's mpirun, one parent process each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.launch.launchers.launcher_contract import scratch
from scaleproof.spec.plugins import LauncherPlugin


def options(ranks: int, folder: Path) -> list[str]:
    """Options of mpirun: so many ranks, not bound to cores, over shared memory whose backing files lie in `folder`."""
    # Without the tcp module no rank listens on any port; shared memory is what one machine uses anyway.
    path = ["--mca", "pml", "ob1", "--mca", "btl", "self,sm", "--mca", "btl_sm_backing_directory", str(folder)]
    return ["-n", str(ranks), "--oversubscribe", "--bind-to", "none", *path]


REACH = "scaleproof.fabric.netns.node_shell"
"""Module of ours that stands for the remote shell between nodes of one coordinator."""


def options_over(hosts: Mapping[str, int], interface: str, agent: str = REACH) -> list[str]:
    """The same on several nodes, each a host's name and its number of ranks, over TCP on an interface; module `agent`
    stands for the remote shell."""
    daemons = {
        "plm": "ssh",
        "plm_ssh_agent": f"{sys.executable} -m {agent}",
        "plm_ssh_no_tree_spawn": "1",
        "prte_if_include": interface,
    }
    path = ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", interface]
    places = ",".join(f"{host}:{ranks}" for host, ranks in hosts.items())
    told = [word for name, value in daemons.items() for word in ("--prtemca", name, value)]
    return ["-n", str(sum(hosts.values())), "--host", places, "--bind-to", "none", *told, *path]


def started(options: list[str], folder: Path | str) -> list[str]:
    """mpirun, and what each of its processes runs. A folder's name that begins with $ is a variable, which differs
    between nodes."""
    program = Path(sys.executable).parent / "mpirun"
    parent = [sys.executable, "-m", "scaleproof.rank.fork_ranks", str(folder), "--rank-from", "OMPI_COMM_WORLD_RANK"]
    if isinstance(folder, str):
        parent = ["/bin/sh", "-c", " ".join(["exec", *parent, "--attended"])]
    return [str(program), *options, *parent]


class Mpirun:
    """`mpirun` of this Python's environment. Its session and backing files lie in the scratch of the launch."""

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """mpirun tied to the supervisor's life; each of its processes forks the rank whose number it got."""
        return [
            sys.executable,
            "-m",
            "scaleproof.rank.process_lifetime",
            str(os.getpid()),
            *started(options(int(launch_spec.case["ranks"]), scratch(launch_spec.launch)), folder),
        ]

    def over_nodes(self, hosts: Mapping[str, int], interface: str, folder: Path) -> list[str]:
        """What the first of several nodes runs: it starts the ranks of all of them."""
        return started(options_over(hosts, interface), folder)

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """Root is allowed: containers and continuous integration run as root."""
        return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpirun_problem() -> str:
    """Why the mpirun beside this Python does not do, or nothing; no other one is taken."""
    program = Path(sys.executable).parent / "mpirun"
    if not program.exists():
        return f"no mpirun beside {sys.executable}"
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    first_line = ((done.stdout + done.stderr).strip().splitlines() or [""])[0]
    if done.returncode == 0 and "Open MPI" in first_line:
        return ""
    return f"mpirun --version ended with {done.returncode}: {first_line[:80]}"


PLUGIN = LauncherPlugin(
    name="mpirun",
    summary="ranks started by Open MPI's mpirun",
    implementation=Mpirun,
    requires=("mpi4py",),
    check_installation=mpirun_problem,
    process_per_rank=True,
)
