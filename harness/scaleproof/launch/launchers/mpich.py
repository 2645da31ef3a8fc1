"""Ranks started by MPICH's mpiexec, in the environment that has it, one parent process each."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.launch.launchers.mpirun import REACH
from scaleproof.spec.plugins import LauncherPlugin
from scaleproof.transports.mpich import ON_ONE_MACHINE, STARTED, between_nodes, home, why_not

EXTRA = "HYDRA_LAUNCHER_EXTRA_ARGS"
"""What mpiexec puts between the remote shell and the host."""


def options(ranks: int) -> list[str]:
    """What mpiexec is told: that many ranks on this machine, not bound to cores."""
    # Inside a batch job it would otherwise start them by the job's own means.
    return ["-launcher", "fork", "-rmk", "user", "-hosts", "localhost", "-bind-to", "none", "-n", str(ranks)]


def options_over(hosts: Mapping[str, int], interface: str) -> list[str]:
    """The same on several nodes, each a host's name and its number of ranks, over an interface; `started` says by what
    a node is reached."""
    # It calls this Python with ssh's -x, which for Python concerns the first line of a file only, then with the words
    # of EXTRA.
    reach = ["-launcher", "ssh", "-launcher-exec", sys.executable, "-rmk", "user", "-iface", interface]
    places = ",".join(f"{host}:{ranks}" for host, ranks in hosts.items())
    # Without -genvnone every node's processes would get the first node's variables in place of their own.
    return [*reach, "-hosts", places, "-genvnone", "-bind-to", "none", "-n", str(sum(hosts.values()))]


def started(options: list[str], words: list[str], agent: str = "") -> list[str]:
    """mpiexec, and what each of its processes runs. `agent`: a module of ours that runs a command line on another node.
    A batch job may have words for its own remote shell in EXTRA."""
    return ["env", f"{EXTRA}={f'-m {agent}' if agent else ''}", str(home() / "bin" / "mpiexec"), *options, *words]


def parent(folder: Path | str) -> list[str]:
    """What starts one rank, in the Python beside mpiexec. A folder's name that begins with $ is a variable, which
    differs between nodes."""
    words = [str(home() / "bin" / "python"), "-m", "scaleproof.rank.fork_ranks", str(folder), "--rank-from", STARTED]
    return ["/bin/sh", "-c", " ".join(["exec", *words, "--attended"])] if isinstance(folder, str) else words


class Mpich:
    """`mpiexec` of the environment with MPICH."""

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """mpiexec tied to the supervisor's life; each of its processes forks the rank whose number it got."""
        return [
            sys.executable,
            "-m",
            "scaleproof.rank.process_lifetime",
            str(os.getpid()),
            *started(options(int(launch_spec.case["ranks"])), parent(folder)),
        ]

    def over_nodes(self, hosts: Mapping[str, int], interface: str, folder: Path) -> list[str]:
        """What the first of several nodes runs: it starts the ranks of all of them."""
        return started(options_over(hosts, interface), parent(folder), REACH)

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """The path of the bytes."""
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
