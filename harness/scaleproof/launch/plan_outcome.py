"""The outcome of a plan: its counts, and why the rest was not tried."""

from __future__ import annotations

from dataclasses import dataclass, field

from scaleproof.core.record_schema import Record
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes

NODES_LOST = 75
"""Exit code: EX_TEMPFAIL of sysexits.h, a temporary failure. Started again with all nodes, the run continues where it
stopped."""


@dataclass(slots=True)
class PlanOutcome:
    """`skipped`: launches that had finished before. `completed`: launches of this run with an ok record. `stopped`: one
    line that says why the rest was not tried; empty when all were. `waiting`: launches that were not tried because too
    few nodes were left for them."""

    planned: int = 0
    skipped: int = 0
    completed: int = 0
    failed: int = 0
    not_runnable: int = 0
    launches: list[str] = field(default_factory=list)
    stopped: str = ""
    allocated: AllocatedNodes | None = None
    """The nodes at the end of the run: some may be lost."""
    waiting: int = 0
    taken: bool = False
    """Slurm ends the job: the rest was not tried."""

    @property
    def ended(self) -> bool:
        """Whether no other plan should be tried either: the disk is full, nodes are gone, or the experiment says stop.
        Launches that wait for a lost node do not keep other plans from running."""
        return bool(self.stopped) and not self.waiting

    @property
    def complete(self) -> bool:
        """Whether every planned launch has an ok record."""
        return self.skipped + self.completed == self.planned

    @property
    def exit_code(self) -> int:
        """0 when every launch of the plan has an ok record, NODES_LOST where launches wait for nodes, else 1."""
        if self.complete:
            return 0
        lost_nodes = self.allocated is not None and bool(self.allocated.lost) and bool(self.stopped)
        return NODES_LOST if self.taken or lost_nodes else 1

    def count(self, record: Record) -> None:
        """Count a launch that has its record."""
        self.launches.append(record.launch)
        if record.status == "ok":
            self.completed += 1
        elif record.status == "failed":
            self.failed += 1
        else:
            self.not_runnable += 1
