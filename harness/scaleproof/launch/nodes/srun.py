"""Agents started by Slurm: one step of the job with one task per node."""

from __future__ import annotations

from collections.abc import Sequence

# --overlap: the supervisor may itself be a step of the job. --kill-on-bad-exit=0, --no-kill, --wait=0: when a node is
# lost, the coordinator ends the agents of the other nodes itself. --cpu-bind=none, --mem=0: the agent's ranks may use
# all cores and memory that the job has on the node.
# Never --unbuffered, which would let lines of several nodes run into each other.
OPTIONS = (
    "--ntasks-per-node=1",
    "--overlap",
    "--cpu-bind=none",
    "--mem=0",
    "--kill-on-bad-exit=0",
    "--no-kill",
    "--wait=0",
    "--mpi=none",
    "--export=ALL",
    "--job-name=scaleproof",
)


def commands(names: Sequence[str], agent: Sequence[str], job: str) -> list[tuple[list[str], list[int]]]:
    """One command for all nodes. `agent`: the command line of an agent, which finds its number by its node's name."""
    count = str(len(names))
    return [
        (
            [
                "srun",
                f"--jobid={job}",
                "--nodes",
                count,
                "--ntasks",
                count,
                f"--nodelist={','.join(names)}",
                *OPTIONS,
                *agent,
            ],
            [*range(len(names))],
        )
    ]
