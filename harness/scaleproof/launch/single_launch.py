"""One planned launch: whether it can run here, its start, its end, and its record."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.core.counters import read_counters
from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.record_schema import PreflightCheck, Record
from scaleproof.core.recorder import read_events
from scaleproof.launch.campaign_ids import CallIds
from scaleproof.launch.finish.compose_record import compose
from scaleproof.launch.finish.surroundings import Surroundings
from scaleproof.launch.finish.unstarted_record import not_started, refused
from scaleproof.launch.launch_rules import LaunchRules, PreparedLaunch
from scaleproof.launch.launchers.launcher_contract import waits_for_go
from scaleproof.launch.launchers.local import Local
from scaleproof.launch.nodes.allocated_nodes import (
    AllocatedNodes,
    NodePlacement,
    machine_of,
    node_fields,
    placement_for,
)
from scaleproof.launch.obstacle import Obstacle
from scaleproof.launch.preflight.case_preflight import obstacle
from scaleproof.launch.preflight.experiment_preflight import Preflight, failed
from scaleproof.launch.start.execute import LaunchEnd, execute, launch_environment, new_watch, prepare
from scaleproof.launch.start.parents_ahead import ParentsAhead, Prepared
from scaleproof.launch.start.replay_profile import (
    Replayed,
    described,
    replayed_for,
    same_replay,
    stall_limit_s,
    write_profile,
)
from scaleproof.launch.start.simulated_launch import finished, not_predictable, predicted_record
from scaleproof.launch.start.starter import launcher_for
from scaleproof.launch.start.warm_parents import WarmParents
from scaleproof.launch.watch.failure_signs import Sign
from scaleproof.record.core_distance import before_launch
from scaleproof.record.difference import write_difference
from scaleproof.record.environment import environment, read_machine_load
from scaleproof.record.store import Store
from scaleproof.record.used_code import is_current
from scaleproof.record.write import samples_table
from scaleproof.spec import registry
from scaleproof.spec.evidence import evidence_on
from scaleproof.spec.launch_kind import replays

if TYPE_CHECKING:
    import pyarrow as pa

    from scaleproof.spec.case import AnyCase
    from scaleproof.spec.plan import PlannedLaunch


class SingleLaunch:
    """Runs launches of one plan, one at a time. `allocated` changes when a node is lost."""

    def __init__(self, store: Store, rules: LaunchRules, preflight: Preflight, ids: CallIds) -> None:
        self.store, self.rules, self.preflight, self.ids = store, rules, preflight, ids
        self.parents = ParentsAhead(self._ahead, None if rules.timed else WarmParents())

    @property
    def allocated(self) -> AllocatedNodes | None:
        """The nodes of the run; the preflight keeps them up to date."""
        return self.preflight.allocated

    def has_finished(self, planned: PlannedLaunch) -> bool:
        """Whether there is an ok record of this launch by this code, on this machine, that replayed the same."""
        if planned.case.plugin("fabric").predicted:
            return finished(planned, self.rules.simulator, self.store)

        def same_inputs(record: Record) -> bool:
            same = same_replay(record, self.store.results, self._byte_s(planned.case))
            return same and is_current(record.code, planned.case.fabric)

        case_id, machine = planned.case.case_id, self._machine(planned)
        record = self.store.find(case_id, planned.plan_index, machine, same_inputs)
        return record is not None

    def look_ahead(self, pending: Sequence[PlannedLaunch]) -> None:
        """Trainings in virtual time begin now, up to the next launch that may be timed: beside it nothing else runs."""
        self.parents.expect(pending)
        if self.rules.simulator is None:
            return
        next_ones = [each for each in takewhile(_is_predicted, pending) if _is_long(each)]
        if len(next_ones) > 1:
            self.rules.simulator.begin(next_ones, expected=sum(map(_is_long, pending)))

    def run(self, planned: PlannedLaunch) -> Record:
        """Run one launch and return its record. KeyboardInterrupt once an interrupted launch is recorded."""
        hindrance = self._hindrance(planned)
        if hindrance is not None:
            return self._not_runnable(planned, hindrance)
        if planned.case.plugin("fabric").predicted:
            return self._predicted(planned)
        replayed = replayed_for(planned.case, self.store.results, self._byte_s(planned.case))
        if isinstance(replayed, Obstacle):
            return self._not_runnable(planned, replayed)
        checks = self.preflight.of(planned.case)
        if failed(checks) is not None:
            return self._refused(planned, checks)
        placement = placement_for(planned.case, self.allocated)
        fabric = registry.load("fabric", planned.case.fabric)(planned.case.interface)
        address = placement.addresses[0] if placement else fabric.address()
        prepared = PreparedLaunch(
            planned,
            self._launch_spec(planned, address, replayed, placement),
            checks,
            replayed,
            placement,
            evidence=evidence_on(planned.case, (placement or fabric).evidence),
        )
        folder = self.store.staging / prepared.launch_spec.launch
        try:
            return self._launch(prepared, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _ahead(self, planned: PlannedLaunch) -> Prepared | None:
        """What the parent of a launch on this machine needs to import before its turn; None for one that is forked from
        a process that has imported."""
        if self.allocated is not None or _is_predicted(planned) or self._hindrance(planned) is not None:
            return None
        launcher = launcher_for(planned.case.fabric, planned.case.launcher)
        if not waits_for_go(launcher) or (self.parents.warm is not None and isinstance(launcher, Local)):
            return None
        launch_spec = self._launch_spec(planned, "")
        folder = self.store.staging / launch_spec.launch
        prepare(folder, launch_spec)
        variables = launch_environment(launch_spec, launcher, folder, self.rules.timed)
        return Prepared(folder, launch_spec, launcher, variables)

    def _hindrance(self, planned: PlannedLaunch) -> Obstacle | None:
        if (hindrance := obstacle(planned.case, planned.programs, self.allocated)) is not None:
            return hindrance
        if (refusal := self.rules.refuse(planned.case)) is not None:
            return refusal
        return not_predictable(planned, self.rules.simulator) if planned.case.plugin("fabric").predicted else None

    def _launch(self, prepared: PreparedLaunch, folder: Path) -> Record:
        planned, launch_spec = prepared.planned, prepared.launch_spec
        prepare(folder, launch_spec)
        if prepared.replayed is not None:
            write_profile(prepared.replayed, folder)
        launcher = launcher_for(planned.case.fabric, planned.case.launcher, prepared.placement)
        variables = launch_environment(launch_spec, launcher, folder, self.rules.timed)
        watch = new_watch(folder, launch_spec)
        surroundings = self._surroundings(prepared, variables)
        interrupted = False
        try:
            launch_end = execute(
                folder,
                launch_spec,
                launcher,
                variables,
                watch,
                self.parents,
                partial(self._read_machine, prepared, surroundings),
            )
        except KeyboardInterrupt:
            launch_end, interrupted = LaunchEnd(Sign("interrupted", -1, 0, "the user ended the run"), [], 0.0), True
        surroundings.load["after"], surroundings.counters_after = read_machine_load(), read_counters()
        events = {rank: read_events(folder / f"rank-{rank}.events") for rank in watch.ranks}
        record = compose(planned.case, launch_spec, launch_end, watch, events, surroundings, prepared.evidence)
        watch.board.close()
        samples = samples_table(events)
        record = self._verified(record, samples)
        self.store.commit(folder, record, samples)
        if interrupted or (record.failure is not None and record.failure.code == "interrupted"):
            raise KeyboardInterrupt
        return record

    def _surroundings(self, prepared: PreparedLaunch, variables: dict[str, str]) -> Surroundings:
        """The machine right before the launch."""
        fixed = environment(variables) | {"difference": write_difference(self.store.results)}
        if prepared.replayed is not None:
            fixed |= {"replay": described(prepared.replayed, prepared.planned.case)}
        return Surroundings(
            fixed,
            _utc(),
            {"before": read_machine_load()},
            read_counters(),
            preflight=prepared.checks,
            sniff=self.preflight.sniff if prepared.placement else None,
            idle=self.preflight.idle,
            placement=prepared.placement,
            machine=self._machine(prepared.planned),
        )

    def _read_machine(self, prepared: PreparedLaunch, surroundings: Surroundings, cpu_s: float) -> None:
        """The machine right before the ranks, and how far apart their cores are where they run on this machine.
        `cpu_s`: of imports, which count as this process's once they have ended."""
        distance = None
        if prepared.placement is None:
            distance = before_launch(prepared.planned.case.ranks, self.rules.near_cores_s)
        before = {**read_machine_load(), "core_distance": distance}
        before["own_cpu_s"] += cpu_s
        surroundings.load["before"], surroundings.counters_before = before, read_counters()

    def _verified(self, record: Record, samples: pa.Table) -> Record:
        if self.rules.verify is None or record.status != "ok":
            return record
        failure = self.rules.verify(record, samples)
        return record if failure is None else record.model_copy(update={"status": "failed", "failure": failure})

    def _predicted(self, planned: PlannedLaunch) -> Record:
        """A launch of fabric `simulated`: its record comes from the simulator, no process starts."""
        assert self.rules.simulator is not None
        launch_spec = self._launch_spec(planned, "")
        record, samples = predicted_record(
            planned, launch_spec, self.rules.simulator, Surroundings(environment(dict(os.environ)), _utc())
        )
        return self._commit(record, samples)

    def _refused(self, planned: PlannedLaunch, checks: list[PreflightCheck]) -> Record:
        """A launch that a preflight check forbids: recorded as failed, no process starts."""
        surroundings = Surroundings(
            environment(dict(os.environ)), _utc(), preflight=checks, machine=self._machine(planned)
        )
        self.parents.end(planned)
        return self._commit(refused(planned.case, self._launch_spec(planned, ""), surroundings), samples_table({}))

    def _not_runnable(self, planned: PlannedLaunch, hindrance: Obstacle) -> Record:
        """The record of a launch that cannot run here: one per code, machine and requirement, not one per start."""
        self.parents.end(planned)
        machine = self._machine(planned)
        key = (planned.plan_index, "not_runnable", machine, hindrance.requirement)
        for record in self.store.records(planned.case.case_id):
            requirement = record.failure.requirement if record.failure is not None else ""
            same = (record.plan_index, record.status, record.machine, requirement) == key
            if same and is_current(record.code, planned.case.fabric):
                return record
        surroundings = Surroundings(environment(dict(os.environ)), _utc(), machine=machine)
        launch_spec = self._launch_spec(planned, "")
        return self._commit(not_started(planned.case, launch_spec, hindrance, surroundings), samples_table({}))

    def _commit(self, record: Record, samples: pa.Table) -> Record:
        """Store the record of a launch of which no process has started."""
        folder = self.store.staging / record.launch
        folder.mkdir(parents=True)
        self.store.commit(folder, record, samples)
        return record

    def _byte_s(self, case: AnyCase) -> float:
        """What a byte of own arithmetic takes, of a strategy that says what it does, beside replayed compute."""
        if self.rules.simulator is None or not replays(case) or case.value("replicas") is None:
            return 0.0
        return self.rules.simulator.byte_s(case)

    def _machine(self, planned: PlannedLaunch) -> str:
        return machine_of(planned.case, self.allocated)

    def _launch_spec(
        self,
        planned: PlannedLaunch,
        address: str,
        replayed: Replayed | None = None,
        placement: NodePlacement | None = None,
    ) -> LaunchSpec:
        case = planned.case
        return LaunchSpec(
            launch=self.parents.launch_of(planned) or secrets.token_hex(8),
            case=case.model_dump(mode="json"),
            case_id=case.case_id,
            size=self.rules.size,
            plan_index=planned.plan_index,
            seed=planned.seed,
            token=secrets.token_hex(16),
            address=address,
            deadline_s=self.rules.deadline_s,
            stall_s=stall_limit_s(planned, replayed, self.rules.stall_s),
            programs=planned.programs,
            campaign=planned.campaign,
            jitter=replayed.law if replayed else "",
            byte_s=replayed.byte_s if replayed else 0.0,
            **self.ids.of(planned)._asdict(),
            **node_fields(placement),
        )


def _is_predicted(planned: PlannedLaunch) -> bool:
    return planned.case.plugin("fabric").predicted


def _is_long(planned: PlannedLaunch) -> bool:
    """Whether a prediction takes seconds: of a strategy that is a program of each rank."""
    return _is_predicted(planned) and bool(planned.case.value("replicas"))


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
