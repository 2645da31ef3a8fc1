"""Agents started by Slurm: one step of the job, one task a node."""

from __future__ import annotations

from collections.abc import Sequence

# --overlap: we may ourselves be a step of the job. --kill-on-bad-exit=0, --no-kill, --wait=0: when a node is lost, the
# coordinator ends the agents of the others itself. --cpu-bind=none, --mem=0: the agent's ranks take what the job has on
# the node.
# Never --unbuffered, which lets lines of several nodes run into each other.
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


def commands(names: Sequence[str], words: Sequence[str], job: str) -> list[tuple[list[str], list[int]]]:
    """One command for all nodes. `words`: what each node runs; a node knows its number by its name."""
    many = str(len(names))
    return [
        (
            [
                "srun",
                f"--jobid={job}",
                "--nodes",
                many,
                "--ntasks",
                many,
                f"--nodelist={','.join(names)}",
                *OPTIONS,
                *words,
            ],
            [*range(len(names))],
        )
    ]
