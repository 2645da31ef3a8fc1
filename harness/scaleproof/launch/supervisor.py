"""Runs a plan: one launch after the other, each recorded once, whatever happens to it."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from scaleproof.core.counters import read_counters
from scaleproof.core.launch_spec import STALL_S, LaunchSpec
from scaleproof.core.record_schema import Failure, PreflightCheck, Record
from scaleproof.core.recorder import read_events
from scaleproof.launch.finish.compose_record import Surroundings, compose, disk_full, not_started, refused
from scaleproof.launch.nodes.allocated_nodes import (
    AllocatedNodes,
    NodePlacement,
    lost_node,
    machine_of,
    node_fields,
    placement_for,
    taken_away,
)
from scaleproof.launch.preflight.case_preflight import Obstacle, obstacle
from scaleproof.launch.preflight.experiment_preflight import Preflight, failed
from scaleproof.launch.progress import Progress, Silent
from scaleproof.launch.results_lock import locked
from scaleproof.launch.start.execute import LaunchEnd, execute, launch_environment, new_watch, prepare
from scaleproof.launch.start.on_guests import launcher_for
from scaleproof.launch.start.replay_profile import described, profile_for, same_profile, stall_limit_s, write_profile
from scaleproof.launch.start.simulated_launch import FABRIC, Simulator, finished, not_predictable, predicted_record
from scaleproof.launch.teardown import clean_leftovers
from scaleproof.launch.watch.failure_signs import Sign
from scaleproof.rank.process_lifetime import adopt_orphans
from scaleproof.record.difference import keep_difference
from scaleproof.record.digest import code_digest
from scaleproof.record.environment import environment, load
from scaleproof.record.store import Store
from scaleproof.record.write import samples_table
from scaleproof.spec import registry
from scaleproof.workloads.profile import Profile

if TYPE_CHECKING:
    import pyarrow as pa

    from scaleproof.spec.case import AnyCase
    from scaleproof.spec.plan import PlannedLaunch


AGAIN = "start again with all nodes, finished launches are kept"


@dataclass(slots=True)
class Outcome:
    """What became of a plan. `skipped`: finished before. `stopped` says in one line why the rest was not tried, empty
    when all was."""

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
    """Launches that were not tried, since too few nodes were left for them."""
    taken: bool = False
    """Slurm takes the nodes away: the rest was not tried."""

    @property
    def ended(self) -> bool:
        """Whether no other plan should be tried either: no room, no nodes, or told to stop. Launches that wait for a
        lost node stand in nobody's way."""
        return bool(self.stopped) and not self.waiting

    @property
    def complete(self) -> bool:
        """Whether every planned launch has an ok record."""
        return self.skipped + self.done == self.planned


def run_plan(
    plan: list[PlannedLaunch],
    results: Path,
    *,
    size: str,
    deadline_s: float,
    progress: Progress | None = None,
    again: bool = False,
    more: Callable[[Store], list[PlannedLaunch]] | None = None,
    verify: Callable[[Record, pa.Table], Failure | None] | None = None,
    stall_s: float = STALL_S,
    simulator: Simulator | None = None,
    refuse: Callable[[AnyCase], tuple[str, str] | None] = lambda case: None,
    allocated: AllocatedNodes | None = None,
    on_node_loss: str = "continue",
) -> Outcome:
    """Run the launches of a plan in its order, skipping finished ones unless `again`. `more` is asked for further
    launches when all are done, until it has none. `verify` looks at a good record and its samples before they are kept,
    and may say why they cannot be true. `simulator` foretells the launches of fabric `simulated`. `refuse` may say why
    a case is too much for this machine. `allocated`: nodes on which cases of fabric `host` stand. `on_node_loss`:
    `continue` with what the nodes that are left can hold, or `stop`.

    SpecError when another supervisor holds the folder; KeyboardInterrupt, also on SIGTERM and SIGHUP, after the current
    launch was torn down."""
    results = results.resolve()
    watcher = progress if progress is not None else Silent()
    with locked(results), _interruptible():
        store = Store(results, watcher.note)
        for left in clean_leftovers(store.staging):
            watcher.note(f"removed what a dead supervisor left: {left}")
        return _Run(
            store, size, (deadline_s, stall_s), watcher, verify, simulator, refuse, (allocated, on_node_loss)
        ).all(plan, again, more)


class _Run:
    """One call of `run_plan`, under the lock."""

    def __init__(
        self,
        store: Store,
        size: str,
        limits_s: tuple[float, float],
        progress: Progress,
        verify: Callable[[Record, pa.Table], Failure | None] | None,
        simulator: Simulator | None,
        refuse: Callable[[AnyCase], tuple[str, str] | None],
        nodes: tuple[AllocatedNodes | None, str],
    ) -> None:
        self.store, self.size, self.progress, self.verify, self.simulator = store, size, progress, verify, simulator
        self.deadline_s, self.stall_s = limits_s
        self.refuse = refuse
        self.allocated, self.on_node_loss = nodes
        self.outcome = Outcome()
        self.preflight = Preflight(store.results, store.staging, self.allocated, progress.note)

    def all(
        self, plan: list[PlannedLaunch], again: bool, more: Callable[[Store], list[PlannedLaunch]] | None
    ) -> Outcome:
        """Every launch in order; a full disk ends the run, since nothing could be recorded."""
        try:
            self._several(plan, again)
            while more is not None and not self.outcome.stopped and (further := more(self.store)):
                self._several(further, again)
        except OSError as error:
            if not disk_full(error):
                raise
            self.outcome.stopped = (
                f"disk_full: no room in {self.store.results}; free some and start again, finished launches are kept"
            )
        finally:
            self.progress.finish()
        self.outcome.allocated = self.allocated
        return self.outcome

    def _several(self, launches: list[PlannedLaunch], again: bool) -> None:
        todo = [
            launch
            for launch in sorted(launches, key=lambda launch: launch.order)
            if again or not self._finished(launch)
        ]
        self.preflight.expect([launch.case for launch in todo if launch.case.fabric != FABRIC])
        self.outcome.planned += len(launches)
        self.outcome.skipped += len(launches) - len(todo)
        self.progress.begin(self.outcome.planned, self.outcome.planned - len(todo))
        for launch in todo:  # it grows
            if self.allocated is not None and self.allocated.waits(launch.case):
                self.outcome.waiting += 1
                continue
            record = self._one(launch)
            if why := taken_away(record, self.allocated):
                self._count(record)
                self.outcome.taken, self.outcome.stopped = True, f"{why}; {AGAIN}"
            elif lost := lost_node(record):
                self._lose(record, lost)
                todo.append(launch)
            else:
                self._count(record)
            if self.outcome.stopped:
                break
        if self.outcome.waiting and self.allocated is not None and not self.outcome.stopped:
            self.outcome.stopped = (
                f"{self.allocated.loss}: {self.outcome.waiting} launches need as many nodes as before; {AGAIN}"
            )

    def _lose(self, record: Record, name: str) -> None:
        """A node went in the midst of a launch: the launch is tried again, on nodes that are left where they are
        enough."""
        assert self.allocated is not None
        self.allocated = self.allocated.without(name)
        self.preflight.lose(self.allocated)
        self.outcome.launches.append(record.launch)
        left = len(self.allocated.nodes) - len(self.allocated.lost)
        self.progress.note(
            f"node_lost: {record.failure.message if record.failure else name} [{record.launch}]; {left} nodes are left"
        )
        if self.on_node_loss == "stop":
            self.outcome.stopped = f"{self.allocated.loss}, and the experiment says on_node_loss: stop; {AGAIN}"

    def _finished(self, launch: PlannedLaunch) -> bool:
        if launch.case.fabric == FABRIC:
            return finished(launch, self.simulator, self.store)

        def counts(record: Record) -> bool:
            return same_profile(record, self.store.results)

        return (
            self.store.find(launch.case.case_id, launch.plan_index, code_digest(), self._machine(launch), counts)
            is not None
        )

    def _count(self, record: Record) -> None:
        self.outcome.launches.append(record.launch)
        if record.status == "ok":
            self.outcome.done += 1
        elif record.status == "failed":
            self.outcome.failed += 1
        else:
            self.outcome.not_runnable += 1
        if record.failure is not None and record.failure.code == "disk_full":
            self.outcome.stopped = f"disk_full: {record.failure.message}; {record.failure.advice}"
        self.progress.ended(record)

    def _one(self, planned: PlannedLaunch) -> Record:
        hindrance = obstacle(planned.case, planned.programs, self.allocated) or _obstacle(self.refuse(planned.case))
        profile = profile_for(planned.case, self.store.results)
        if hindrance is None and planned.case.fabric == FABRIC:
            hindrance = not_predictable(planned, self.simulator)
        if hindrance is not None:
            return self._not_runnable(planned, *hindrance)
        if planned.case.fabric == FABRIC:
            return self._predicted(planned)
        if isinstance(profile, tuple):
            return self._not_runnable(planned, *profile)
        checks = self.preflight.of(planned.case)
        if failed(checks) is not None:
            return self._refused(planned, checks)
        placement = placement_for(planned.case, self.allocated)
        fabric = registry.load("fabric", planned.case.fabric)(planned.case.interface)
        launch_spec = self._launch_spec(
            planned, placement.addresses[0] if placement else fabric.address(), profile, placement
        )
        folder = self.store.staging / launch_spec.launch
        evidence = "emulated" if profile else (placement or fabric).evidence
        try:
            return self._launch(planned, launch_spec, folder, evidence, checks, profile, placement)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _launch(
        self,
        planned: PlannedLaunch,
        launch_spec: LaunchSpec,
        folder: Path,
        evidence: str,
        checks: list[PreflightCheck],
        profile: Profile | None,
        placement: NodePlacement | None,
    ) -> Record:
        prepare(folder, launch_spec)
        if profile is not None:
            write_profile(profile, folder)
        launcher = launcher_for(planned.case.fabric, planned.case.launcher, placement)
        variables = launch_environment(launch_spec, launcher, folder)
        watch = new_watch(folder, launch_spec)
        around = Surroundings(
            environment(variables)
            | {"difference": keep_difference(self.store.results)}
            | ({"replay": described(profile)} if profile else {}),
            _utc(),
            {"before": load()},
            read_counters(),
            preflight=checks,
            sniff=self.preflight.sniff if placement else None,
            idle=self.preflight.idle,
            placement=placement,
            machine=self._machine(planned),
        )
        interrupted = False
        try:
            ended = execute(folder, launch_spec, launcher, variables, watch)
        except KeyboardInterrupt:
            ended, interrupted = LaunchEnd(Sign("interrupted", -1, 0, "the user ended the run"), [], 0.0), True
        around.load["after"], around.counters_after = load(), read_counters()
        events = {rank: read_events(folder / f"rank-{rank}.events") for rank in watch.ranks}
        record = compose(planned.case, launch_spec, ended, watch, events, around, evidence)
        watch.board.close()
        samples = samples_table(events)
        if self.verify is not None and record.status == "ok" and (untrue := self.verify(record, samples)) is not None:
            record = record.model_copy(update={"status": "failed", "failure": untrue})
        self.store.commit(folder, record, samples)
        if interrupted or (record.failure is not None and record.failure.code == "interrupted"):
            raise KeyboardInterrupt
        return record

    def _predicted(self, planned: PlannedLaunch) -> Record:
        """A launch that nothing is started for."""
        assert self.simulator is not None
        launch_spec = self._launch_spec(planned, "")
        folder = self.store.staging / launch_spec.launch
        folder.mkdir(parents=True)
        record, samples = predicted_record(
            planned, launch_spec, self.simulator, Surroundings(environment(dict(os.environ)), _utc())
        )
        self.store.commit(folder, record, samples)
        return record

    def _refused(self, planned: PlannedLaunch, checks: list[PreflightCheck]) -> Record:
        """A launch that a check before it forbids: recorded as failed, nothing of it starts."""
        launch_spec = self._launch_spec(planned, "")
        folder = self.store.staging / launch_spec.launch
        folder.mkdir(parents=True)
        record = refused(
            planned.case,
            launch_spec,
            Surroundings(environment(dict(os.environ)), _utc(), preflight=checks, machine=self._machine(planned)),
        )
        self.store.commit(folder, record, samples_table({}))
        return record

    def _not_runnable(self, planned: PlannedLaunch, reason: str, advice: str) -> Record:
        """Recorded once per code and machine, not at every start."""
        machine = self._machine(planned)
        for known in self.store.records(planned.case.case_id):
            same = (
                known.plan_index == planned.plan_index
                and known.code.digest == code_digest(planned.case.fabric)
                and known.machine == machine
            )
            if (
                same
                and known.failure is not None
                and known.status == "not_runnable"
                and known.failure.message == reason
            ):
                return known
        launch_spec = self._launch_spec(planned, "")
        folder = self.store.staging / launch_spec.launch
        folder.mkdir(parents=True)
        record = not_started(
            planned.case,
            launch_spec,
            reason,
            advice,
            Surroundings(environment(dict(os.environ)), _utc(), machine=machine),
        )
        self.store.commit(folder, record, samples_table({}))
        return record

    def _machine(self, planned: PlannedLaunch) -> str:
        return machine_of(planned.case, self.allocated)

    def _launch_spec(
        self,
        planned: PlannedLaunch,
        address: str,
        profile: Profile | None = None,
        placement: NodePlacement | None = None,
    ) -> LaunchSpec:
        case = planned.case
        return LaunchSpec(
            launch=secrets.token_hex(8),
            case=case.model_dump(mode="json"),
            case_id=case.case_id,
            size=self.size,
            plan_index=planned.plan_index,
            seed=planned.seed,
            token=secrets.token_hex(16),
            address=address,
            deadline_s=self.deadline_s,
            stall_s=stall_limit_s(case, profile, self.stall_s),
            programs=planned.programs,
            **node_fields(placement),
        )


def _obstacle(reason_and_advice: tuple[str, str] | None) -> Obstacle | None:
    return None if reason_and_advice is None else Obstacle(*reason_and_advice)


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does; orphans of a launch become this process's children, so that none
    stays a zombie."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    adopt_orphans()
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)} if main else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        adopt_orphans(False)
