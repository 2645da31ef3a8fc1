"""Runs an experiment's launches, or with --dry-run shows what they would be. Finished launches are not run again unless
--again says so."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.commands.common import (
    allocation_arguments,
    nodes_of_run,
    open_store,
    planned_arguments,
    print_table,
    profile_of_this_machine,
    size_of,
)
from scaleproof.commands.sequential import sequential

if TYPE_CHECKING:
    import pyarrow as pa

    from scaleproof.core.record_schema import Failure, Record
    from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
    from scaleproof.launch.obstacle import Obstacle
    from scaleproof.launch.plan_outcome import PlanOutcome
    from scaleproof.launch.sequential_stopping import Sequential
    from scaleproof.spec.case import AnyCase
    from scaleproof.spec.plan import PlannedLaunch
    from scaleproof.spec.suite import Suite

HELP = "run an experiment, or list its launches with --dry-run"
EXAMPLE = "scaleproof run das2016 throughput --size smoke --dry-run"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    planned_arguments(parser)
    allocation_arguments(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="list cases, launches and an estimate of time and memory; write nothing"
    )
    parser.add_argument(
        "--again", action="store_true", help="run finished launches once more; the earlier records stay"
    )
    parser.add_argument("--case", metavar="ID", help="only the case whose id starts with ID")
    parser.add_argument("--launch", type=int, metavar="N", help="only repetition N of each case, from 0")


def main(given: argparse.Namespace) -> int:
    """Plan, then show or run."""
    from scaleproof.spec.suite import load_suite

    size = size_of(given)
    suite = load_suite(given.suite, given.suites)
    planned = plan_experiments(suite, given.experiment, size)
    if given.launch is not None:
        planned = {name: _up_to_budget(suite, name, size) for name in planned}
    plans = {name: _chosen(launches, given) for name, launches in planned.items()}
    _must_match(plans, given)
    # Before the first launch, so that a wrong metric is said at once; launches asked for one by one are just these.
    rules = (
        {name: sequential(suite, name, size) for name in plans} if given.case is None and given.launch is None else {}
    )
    if given.dry_run:
        return dry_run(suite, plans, size, given.results)
    open_store(given.results)  # warns of records of version 0.1, whose launches would run anew
    allocated = nodes_of_run(given)
    if given.case is not None:
        _must_be_runnable(plans, allocated)
    codes = []
    for name, launches in plans.items():
        if launches:
            code, outcome = _run(suite, name, launches, size, given, rules.get(name), allocated)
            codes.append(code)
            allocated = outcome.allocated
            if outcome.ended:
                break
    return max(codes)


def plan_experiments(suite: Suite, experiment: str | None, size: str) -> dict[str, list[PlannedLaunch]]:
    """The plan of one experiment, or of all that have this size; raises SpecError when there is none."""
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.plan import plan

    names = [experiment] if experiment else [name for name, found in suite.experiments.items() if size in found.sizes]
    if not names:
        raise SpecError(f"suite {suite.name!r} has no experiment at size {size!r}")
    return {name: plan(suite, name, size) for name in names}


def _up_to_budget(suite: Suite, experiment: str, size: str) -> list[PlannedLaunch]:
    """Every launch that a size may come to: one repetition of it is asked for by its number."""
    from scaleproof.spec.plan import plan

    chosen = suite.experiment(experiment).size(size)
    budget = chosen.stop.budget if chosen.stop else chosen.launches
    return plan(suite, experiment, size, {case.case_id: budget for case in chosen.cases})


def _chosen(launches: Sequence[PlannedLaunch], given: argparse.Namespace) -> list[PlannedLaunch]:
    return [
        launch
        for launch in launches
        if (given.case is None or launch.case.case_id.startswith(given.case))
        and given.launch in (None, launch.plan_index)
    ]


def _must_match(plans: Mapping[str, Sequence[PlannedLaunch]], given: argparse.Namespace) -> None:
    from scaleproof.spec.errors import SpecError

    if not any(plans.values()):
        asked = [
            f"--{name} {value}" for name, value in (("case", given.case), ("launch", given.launch)) if value is not None
        ]
        raise SpecError(f"no launch fits {' '.join(asked)}; --dry-run lists the cases and how often each is launched")


def _must_be_runnable(plans: Mapping[str, Sequence[PlannedLaunch]], allocated: AllocatedNodes | None) -> None:
    """A case that a person names by its id and that cannot run here is a mistake; in a whole experiment it is recorded
    as not runnable."""
    from scaleproof.launch.preflight.case_preflight import obstacle
    from scaleproof.spec.errors import SpecError

    obstacles = [
        obstacle(launch.case, launch.programs, allocated) for launches in plans.values() for launch in launches
    ]
    if obstacles and obstacles[0] is not None and all(obstacles):
        raise SpecError(f"not runnable here: {obstacles[0].reason}; {obstacles[0].advice}")


def dry_run(suite: Suite, plans: Mapping[str, Sequence[PlannedLaunch]], size: str, results: Path) -> int:
    """Print cases, launches and an estimate."""
    from scaleproof.spec.estimate import ASSUMPTIONS, estimate
    from scaleproof.spec.plan import order_seed
    from scaleproof.spec.units import format_bytes, format_seconds

    earlier = _earlier_seconds(results)
    total, peak = 0.0, 0
    for name, launches in plans.items():
        planned = {launch.case.case_id for launch in launches}
        cases = {case.case_id: case for case in suite.experiment(name).size(size).cases if case.case_id in planned}
        costs = {case_id: estimate(case, earlier) for case_id, case in cases.items()}
        shown = changing(list(cases.values()))
        rows = [
            [
                case_id,
                case.arm,
                *(_cell(case, field) for field in shown),
                str(sum(launch.case.case_id == case_id for launch in launches)),
                format_seconds(costs[case_id].seconds),
                format_bytes(costs[case_id].nbytes),
                f"{costs[case_id].launches} earlier launches" if costs[case_id].launches else "formula",
            ]
            for case_id, case in cases.items()
        ]
        title = (
            f"{suite.name} {name} {size}: {len(cases)} cases, {len(launches)} launches, order seed "
            f"{order_seed(suite.name, name, size)}"
        )
        print_table(["case", "arm", *shown, "launches", "time each", "memory", "estimated from"], rows, title)
        if stop := suite.experiment(name).size(size).stop:
            what = stop.metric + (f" at {format_bytes(stop.nbytes)}" if stop.nbytes else "")
            print(
                f"goes on until the interval of {what} reaches no further than {stop.target:.0%} from its median, "
                f"up to {stop.budget} launches a case\n"
            )
        total += sum(costs[launch.case.case_id].seconds for launch in launches)
        peak = max(peak, *(cost.nbytes for cost in costs.values()))
    launches_in_all = sum(map(len, plans.values()))
    print(
        f"{launches_in_all} launches, about {format_seconds(total)} and up to {format_bytes(peak)} of memory "
        f"(formula: {ASSUMPTIONS})"
    )
    _warn_about_memory(peak)
    return 0


def changing(cases: Sequence[AnyCase]) -> list[str]:
    """The fields in which the cases differ, besides the arm's name."""
    dumps = [case.flat() for case in cases]
    fields = dict.fromkeys(field for dump in dumps for field in dump)
    return [field for field in fields if field != "arm" and len({repr(dump.get(field)) for dump in dumps}) > 1]


def _cell(case: AnyCase, field: str) -> str:
    value = case.value(field, "")
    if isinstance(value, tuple):
        return f"{len(value)} values"
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _earlier_seconds(results: Path) -> dict[str, list[float]]:
    """Wall seconds of finished launches, by case id; empty where there is no folder of records."""
    if not (results / "runs").is_dir():
        return {}
    seconds: dict[str, list[float]] = {}
    for record in open_store(results).records():
        if record.status == "ok":
            seconds.setdefault(record.case_id, []).append(record.wall_s)
    return seconds


def _warn_about_memory(nbytes: int) -> None:
    import psutil

    from scaleproof.spec.units import format_bytes

    available = psutil.virtual_memory().available
    if nbytes > available:
        print(
            f"warning: {format_bytes(nbytes)} is more than the {format_bytes(available)} that are free here",
            file=sys.stderr,
        )


def _verifier(results: Path) -> Callable[[Record, pa.Table], Failure | None] | None:
    """Fails launches whose rates are beyond what this machine's memory can do, where that was measured."""
    profile = profile_of_this_machine(results)
    if profile is None:
        return None
    from scaleproof.calibrate.attainable import impossible

    return lambda record, samples: impossible(record, samples.to_pandas(), profile)


def _refusal(results: Path) -> Callable[[AnyCase], Obstacle | None]:
    """Refuses cases that need more than this machine can carry, where that was measured."""
    from scaleproof.calibrate.cluster_capacity import read_capacity
    from scaleproof.calibrate.needed_dilation import too_much
    from scaleproof.launch.obstacle import Obstacle
    from scaleproof.record.digest import machine_id

    capacity = read_capacity(results)

    def refuse(case: AnyCase) -> Obstacle | None:
        reason = too_much(case, capacity, results / "machines" / machine_id())
        return Obstacle(*reason, requirement="capacity of the machine") if reason else None

    return refuse


def _run(
    suite: Suite,
    experiment: str,
    launches: Sequence[PlannedLaunch],
    size: str,
    given: argparse.Namespace,
    rule: Sequential | None,
    allocated: AllocatedNodes | None,
) -> tuple[int, PlanOutcome]:
    """The exit code (see PlanOutcome.exit_code) and what became of the plan."""
    from scaleproof.core.launch_spec import STALL_S
    from scaleproof.launch.progress import progress_on_terminal
    from scaleproof.launch.sequential_stopping import fixed_number
    from scaleproof.launch.supervisor import run_plan
    from scaleproof.record.stops import write_stops
    from scaleproof.simulate.predict import Predictor

    title = f"{suite.name} {experiment} {size}"
    limits = suite.experiment(experiment).size(size)
    if rule is not None:
        rule.allocated = allocated
    outcome = run_plan(
        list(launches),
        given.results,
        size=size,
        deadline_s=limits.deadline_s,
        progress=progress_on_terminal(title),
        again=given.again,
        more=rule.more if rule else None,
        verify=_verifier(given.results),
        stall_s=limits.stall_s or STALL_S,
        simulator=Predictor(given.results),
        refuse=_refusal(given.results),
        allocated=allocated,
        on_node_loss=suite.experiment(experiment).on_node_loss,
    )
    if rule is None and given.case is None and given.launch is None:
        write_stops(given.results, fixed_number(suite, experiment, size, open_store(given.results), allocated))
    counts = (
        f"{outcome.skipped} finished before, {outcome.completed} done, {outcome.failed} failed, {outcome.not_runnable} "
        "not runnable here"
    )
    print(f"{title}: {outcome.planned} launches: {counts}", flush=True)
    if outcome.stopped:
        print(outcome.stopped, file=sys.stderr)
    return outcome.exit_code, outcome
