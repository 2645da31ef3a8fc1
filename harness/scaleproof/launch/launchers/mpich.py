"""Ranks started by MPICH's mpiexec, in the Python environment that has MPICH, with one parent process per rank."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.launch.launchers.launcher_contract import Launcher
from scaleproof.launch.launchers.mpirun import NODE_SHELL
from scaleproof.rank.process_lifetime import ending_with_this_process
from scaleproof.spec.plugins import LauncherPlugin
from scaleproof.transports.mpich import ON_ONE_MACHINE, STARTED, between_nodes, home, why_not

EXTRA = "HYDRA_LAUNCHER_EXTRA_ARGS"
"""Environment variable: arguments that mpiexec inserts between the remote shell and the host."""


def options(ranks: int) -> list[str]:
    """Options of mpiexec for so many ranks on this machine, not bound to cores."""
    # Without `fork` mpiexec would start them by srun or the like inside a batch job.
    return ["-launcher", "fork", "-rmk", "user", "-hosts", "localhost", "-bind-to", "none", "-n", str(ranks)]


def options_over(hosts: Mapping[str, int], interface: str) -> list[str]:
    """Options of mpiexec for several nodes over an interface; `hosts`: host to its number of ranks. The `agent` of
    `started` is the remote shell between the nodes."""
    # mpiexec calls this Python as if it were ssh: with ssh's option -x, which Python applies to the first line of a
    # file only, and with the arguments of EXTRA.
    remote_shell = ["-launcher", "ssh", "-launcher-exec", sys.executable, "-rmk", "user", "-iface", interface]
    ranks_of_hosts = ",".join(f"{host}:{ranks}" for host, ranks in hosts.items())
    # Without -genvnone the processes of every node would get the first node's variables instead of their own.
    return [*remote_shell, "-hosts", ranks_of_hosts, "-genvnone", "-bind-to", "none", "-n", str(sum(hosts.values()))]


def started(options: list[str], command: list[str], agent: str = "") -> list[str]:
    """The command line of mpiexec; each of its processes runs `command`. `agent`: a module of the harness that runs a
    command line on another node. EXTRA is always set: in a batch job it may hold arguments of another remote shell."""
    return ["env", f"{EXTRA}={f'-m {agent}' if agent else ''}", str(home() / "bin" / "mpiexec"), *options, *command]


def parent(folder: Path | str) -> list[str]:
    """The command that starts one rank, in the Python beside mpiexec. A `folder` that begins with $ is a variable,
    whose value differs between nodes."""
    command = [str(home() / "bin" / "python"), "-m", "scaleproof.rank.fork_ranks", str(folder), "--rank-from", STARTED]
    return ["/bin/sh", "-c", " ".join(["exec", *command, "--attended"])] if isinstance(folder, str) else command


class Mpich(Launcher):
    """`mpiexec` of the environment with MPICH."""

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """mpiexec, which ends with the supervisor; each of its processes forks the rank with its MPI rank."""
        return ending_with_this_process(started(options(int(launch_spec.case["ranks"])), parent(folder)))

    def over_nodes(self, hosts: Mapping[str, int], interface: str, folder: Path) -> list[str]:
        """The command that the first of several nodes runs; it starts the ranks of all nodes."""
        return started(options_over(hosts, interface), parent(folder), NODE_SHELL)

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """The variables that choose the path of the bytes."""
        case = launch_spec.parsed_case
        return (
            between_nodes(case.interface)
            if case.plugin("fabric").makes_nodes and case.nodes > 1
            else dict(ON_ONE_MACHINE)
        )


PLUGIN = LauncherPlugin(
    name="mpich",
    summary="ranks started by MPICH's mpiexec, in the environment that has it",
    implementation=Mpich,
    probe=why_not,
    advice="type `python3 -m tools.setup mpich`",
    process_per_rank=True,
)
