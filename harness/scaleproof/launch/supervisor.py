"""Runs a plan: one launch after the other. Each gets one record, also when it fails."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.core.launch_spec import STALL_S
from scaleproof.core.record_schema import Record
from scaleproof.launch.campaign_ids import CallIds
from scaleproof.launch.finish.compose_record import disk_full
from scaleproof.launch.interrupts import interruptible
from scaleproof.launch.launch_rules import LaunchRules, Refusal, Verification
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes, lost_node, taken_away
from scaleproof.launch.plan_outcome import PlanOutcome
from scaleproof.launch.preflight.experiment_preflight import Preflight
from scaleproof.launch.progress import Progress, Silent
from scaleproof.launch.results_lock import locked
from scaleproof.launch.single_launch import SingleLaunch
from scaleproof.launch.start.predicted_ahead import PredictedAhead
from scaleproof.launch.start.simulated_launch import Simulator
from scaleproof.launch.teardown import clean_leftovers
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError

if TYPE_CHECKING:
    from scaleproof.spec.plan import PlannedLaunch

AGAIN = "start again with all nodes, finished launches are kept"
More = Callable[[Store], "list[PlannedLaunch]"]
"""Further launches once all planned ones have ended; empty when there are none."""


def run_plan(
    plan: list[PlannedLaunch],
    results: Path,
    *,
    size: str,
    deadline_s: float,
    progress: Progress | None = None,
    again: bool = False,
    more: More | None = None,
    verify: Verification | None = None,
    stall_s: float = STALL_S,
    simulator: Simulator | None = None,
    refuse: Refusal = lambda case: None,
    allocated: AllocatedNodes | None = None,
    on_node_loss: str = "continue",
    near_cores_s: float | None = None,
    timed: bool = True,
) -> PlanOutcome:
    """Run the launches of a plan in its order, skipping finished ones unless `again`. When all have ended, `more` is
    called for further launches until it returns none. `verify` returns a failure where the values of an ok record
    cannot be true. `simulator` predicts the launches of fabric `simulated`. `refuse` returns an obstacle where a case
    needs more than this machine can carry. `allocated`: nodes on which cases of fabric `host` run. `on_node_loss`:
    `continue` with the cases that fit the remaining nodes, or `stop`.
    `near_cores_s`: how long each launch of several ranks on this machine waits for cores that are near each other.
    `timed: False`: other supervisors that say so too may run launches beside these.

    SpecError when another supervisor uses the results folder; KeyboardInterrupt, also on SIGTERM and SIGHUP, after the
    current launch was torn down."""
    results = results.resolve()
    progress = progress if progress is not None else Silent()
    with interruptible(), ExitStack() as stack:
        store = Store(results, progress.note)
        _lock(stack, store, progress, shared=not timed)
        ahead = stack.enter_context(PredictedAhead(simulator)) if simulator is not None else None
        rules = LaunchRules(size, deadline_s, stall_s, verify, ahead, refuse, near_cores_s, timed)
        ids = CallIds(plan, store, allocated, again)
        preflight = Preflight(store.results, store.staging, allocated, progress.note, timed=timed)
        launches = SingleLaunch(store, rules, preflight, ids)
        stack.callback(launches.parents.close)
        return _PlanRun(launches, progress, on_node_loss).run(plan, again, more)


def _lock(stack: ExitStack, store: Store, progress: Progress, shared: bool) -> None:
    """Hold the results folder, without what a dead supervisor has left in it. Beside one that lives nothing is
    removed."""
    with suppress(SpecError) if shared else nullcontext(), ExitStack() as alone:
        alone.enter_context(locked(store.results))
        for leftover in clean_leftovers(store.staging):
            progress.note(f"removed what a dead supervisor left: {leftover}")
        if not shared:
            stack.push(alone.pop_all())
    if shared:
        stack.enter_context(locked(store.results, shared=True))


class _PlanRun:
    """One call of `run_plan`, under the lock."""

    def __init__(self, launches: SingleLaunch, progress: Progress, on_node_loss: str) -> None:
        self.launches, self.progress, self.on_node_loss = launches, progress, on_node_loss
        self.store, self.preflight = launches.store, launches.preflight
        self.outcome = PlanOutcome()

    def run(self, plan: list[PlannedLaunch], again: bool, more: More | None) -> PlanOutcome:
        """Every launch in order; a full disk ends the run, since no launch could be recorded."""
        try:
            self._run_block(plan, again)
            while more is not None and not self.outcome.stopped and (further := more(self.store)):
                self._run_block(further, again)
        except OSError as error:
            if not disk_full(error):
                raise
            self.outcome.stopped = (
                f"disk_full: no room in {self.store.results}; free some space and start again, "
                "finished launches are kept"
            )
        finally:
            self.progress.finish()
        self.outcome.allocated = self.preflight.allocated
        return self.outcome

    def _run_block(self, launches: list[PlannedLaunch], again: bool) -> None:
        """Launches in their order; a launch during which a node was lost is tried again after all others."""
        in_order = sorted(launches, key=lambda launch: launch.order)
        pending = deque(launch for launch in in_order if again or not self.launches.has_finished(launch))
        self.preflight.expect([launch.case for launch in pending if not launch.case.plugin("fabric").predicted])
        self.outcome.planned += len(launches)
        self.outcome.skipped += len(launches) - len(pending)
        self.progress.begin(self.outcome.planned, self.outcome.planned - len(pending))
        while pending and not self.outcome.stopped:
            self.launches.look_ahead(pending)
            launch = pending.popleft()
            if self._waits_for_node(launch):
                self.outcome.waiting += 1
            elif self._run_launch(launch):
                pending.append(launch)
        allocated = self.preflight.allocated
        if self.outcome.waiting and allocated is not None and not self.outcome.stopped:
            self.outcome.stopped = (
                f"{allocated.loss}: {self.outcome.waiting} launches need as many nodes as before; {AGAIN}"
            )

    def _waits_for_node(self, launch: PlannedLaunch) -> bool:
        allocated = self.preflight.allocated
        return allocated is not None and allocated.waits(launch.case)

    def _run_launch(self, launch: PlannedLaunch) -> bool:
        """Returns whether the launch has to be tried again because a node was lost during it."""
        record = self.launches.run(launch)
        if reason := taken_away(record, self.preflight.allocated):
            self._count(record)
            self.outcome.taken, self.outcome.stopped = True, f"{reason}; {AGAIN}"
        elif node := lost_node(record):
            self._lose_node(record, node)
            return True
        else:
            self._count(record)
        return False

    def _lose_node(self, record: Record, node: str) -> None:
        """The remaining nodes are checked again before the next launch."""
        allocated = self.preflight.allocated
        assert allocated is not None
        allocated = allocated.without(node)
        self.preflight.lose(allocated)
        self.outcome.launches.append(record.launch)
        remaining = len(allocated.nodes) - len(allocated.lost)
        message = record.failure.message if record.failure else node
        self.progress.note(f"node_lost: {message} [{record.launch}]; {remaining} nodes are left")
        if self.on_node_loss == "stop":
            self.outcome.stopped = f"{allocated.loss}, and the experiment says on_node_loss: stop; {AGAIN}"

    def _count(self, record: Record) -> None:
        self.outcome.count(record)
        if record.failure is not None and record.failure.code == "disk_full":
            self.outcome.stopped = f"disk_full: {record.failure.message}; {record.failure.advice}"
        self.progress.ended(record)
