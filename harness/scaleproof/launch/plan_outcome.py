"""What became of a plan: its counts, and why the rest was not tried."""

from __future__ import annotations

from dataclasses import dataclass, field

from scaleproof.core.record_schema import Record
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes

NODES_LOST = 75
"""Exit code, that of a failure that passes (sysexits.h): started again with all nodes, the run goes on where it
stopped."""


@dataclass(slots=True)
class PlanOutcome:
    """`skipped`: launches that had finished before. `stopped` says in one line why the rest was not tried, empty when
    all was. `waiting`: launches that were not tried, since too few nodes were left for them."""

    planned: int = 0
    skipped: int = 0
    done: int = 0
    failed: int = 0
    not_runnable: int = 0
    launches: list[str] = field(default_factory=list)
    stopped: str = ""
    allocated: AllocatedNodes | None = None
    """Nodes as they are at the end: some may be lost."""
    waiting: int = 0
    taken: bool = False
    """Slurm takes the nodes away: the rest was not tried."""

    @property
    def ended(self) -> bool:
        """Whether no other plan should be tried either: no room, no nodes, or told to stop. Launches that wait for a
        lost node do not keep other plans from running."""
        return bool(self.stopped) and not self.waiting

    @property
    def complete(self) -> bool:
        """Whether every planned launch has an ok record."""
        return self.skipped + self.done == self.planned

    @property
    def exit_code(self) -> int:
        """0 when every launch of the plan has a good record, NODES_LOST where launches wait for nodes, else 1."""
        if self.complete:
            return 0
        lost_nodes = self.allocated is not None and bool(self.allocated.lost) and bool(self.stopped)
        return NODES_LOST if self.taken or lost_nodes else 1

    def count(self, record: Record) -> None:
        """One more launch has its record."""
        self.launches.append(record.launch)
        if record.status == "ok":
            self.done += 1
        elif record.status == "failed":
            self.failed += 1
        else:
            self.not_runnable += 1
