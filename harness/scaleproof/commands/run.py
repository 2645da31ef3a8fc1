"""Runs an experiment's launches, or lists them with --dry-run. Finished launches are run again only with --again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.commands.collect import make_table
from scaleproof.commands.common import (
    allocation_arguments,
    nodes_of_run,
    open_store,
    planned_arguments,
    profile_of_this_machine,
    size_of,
)
from scaleproof.commands.dry_run import dry_run
from scaleproof.commands.sequential import sequential

if TYPE_CHECKING:
    import pyarrow as pa

    from scaleproof.core.record_schema import Failure, Record
    from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
    from scaleproof.launch.obstacle import Obstacle
    from scaleproof.launch.plan_outcome import PlanOutcome
    from scaleproof.launch.sequential_stopping import Sequential
    from scaleproof.launch.start.simulated_launch import Simulator
    from scaleproof.record.store import Store
    from scaleproof.spec.case import AnyCase
    from scaleproof.spec.plan import PlannedLaunch
    from scaleproof.spec.suite import Suite

HELP = "run an experiment, or list its launches with --dry-run"
EXAMPLE = "scaleproof run das2016 throughput --size smoke --dry-run"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    planned_arguments(parser)
    allocation_arguments(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="list cases, launches and an estimate of time and memory; write nothing"
    )
    parser.add_argument(
        "--again", action="store_true", help="run finished launches once more; the earlier records stay"
    )
    parser.add_argument("--case", metavar="ID", help="only the case whose id starts with ID")
    parser.add_argument(
        "--near-cores",
        type=float,
        metavar="SECONDS",
        help="before each launch wait up to SECONDS until the cores of a virtual machine are near each other",
    )
    parser.add_argument("--launch", type=int, metavar="N", help="only repetition N of each case, from 0")
    parser.add_argument(
        "--campaign",
        type=int,
        metavar="N",
        help="the campaign of each experiment that is run, from 0 (default: the next unfinished one)",
    )
    parser.add_argument(
        "--table", type=Path, metavar="PATH", help="then write the experiment's table, as `scaleproof collect` does"
    )


def main(options: argparse.Namespace) -> int:
    """Plan, then show or run."""
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.suite import load_suite

    size = size_of(options)
    suite = load_suite(options.suite, options.suites)
    planned = plan_experiments(suite, options.experiment, size)
    if options.launch is not None:
        planned = {name: _up_to_budget(suite, name, size) for name in planned}
    plans = {name: _chosen(launches, options) for name, launches in planned.items()}
    _must_match(plans, options)
    plans = {name: launches for name, launches in plans.items() if launches}
    if options.table is not None and len(plans) > 1:
        raise SpecError("--table is the table of one experiment; name it after the suite")
    if options.dry_run:
        _rules(suite, plans, size, options)  # an unknown metric is an error here too
        return dry_run(suite, plans, size, options.results)
    store = open_store(options.results)  # warns of records of version 0.1: their launches would run again
    allocated = nodes_of_run(options)
    plans = {name: _one_campaign(launches, store, allocated) for name, launches in plans.items()}
    # Made before the first launch, so that an unknown metric is an error at once.
    rules = _rules(suite, plans, size, options)
    if options.case is not None:
        _must_be_runnable(plans, allocated)
    codes = []
    for name, launches in plans.items():
        outcome = _run(suite, name, launches, size, options, rules.get(name), allocated)
        codes.append(outcome.exit_code)
        allocated = outcome.allocated
        if outcome.ended:
            break
    if options.table is not None and max(codes) <= 1:  # failed launches are rows, too
        (name,) = plans
        make_table(suite, name, size, options.results, options.table)
    return max(codes)


def _one_campaign(
    launches: Sequence[PlannedLaunch], store: Store, allocated: AllocatedNodes | None
) -> list[PlannedLaunch]:
    """The launches of the next unfinished campaign."""
    from scaleproof.launch.next_campaign import next_campaign

    campaign = next_campaign(launches, store, allocated)
    return [launch for launch in launches if launch.campaign == campaign]


def _rules(
    suite: Suite, plans: Mapping[str, Sequence[PlannedLaunch]], size: str, options: argparse.Namespace
) -> dict[str, Sequential | None]:
    """The stopping rule of each experiment; none where only a part of one is requested."""
    if _is_part(options):
        return {}
    return {name: sequential(suite, name, size, launches[0].campaign) for name, launches in plans.items()}


def _is_part(options: argparse.Namespace) -> bool:
    """Whether only some launches of the plan are requested, by case or repetition."""
    return options.case is not None or options.launch is not None


def plan_experiments(suite: Suite, experiment: str | None, size: str) -> dict[str, list[PlannedLaunch]]:
    """The plan of one experiment, or of all that have this size; SpecError if none has it."""
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.plan import plan

    names = [experiment] if experiment else [name for name, form in suite.experiments.items() if size in form.sizes]
    if not names:
        raise SpecError(f"suite {suite.name!r} has no experiment at size {size!r}")
    return {name: plan(suite, name, size) for name in names}


def _up_to_budget(suite: Suite, experiment: str, size: str) -> list[PlannedLaunch]:
    """All repetitions up to the budget of the size's stopping rule, so that --launch can select each of them."""
    from scaleproof.spec.plan import plan

    chosen = suite.experiment(experiment).size(size)
    budget = chosen.stop.budget if chosen.stop else chosen.launches
    return plan(suite, experiment, size, {case.case_id: budget for case in chosen.cases})


def _chosen(launches: Sequence[PlannedLaunch], options: argparse.Namespace) -> list[PlannedLaunch]:
    return [
        launch
        for launch in launches
        if (options.case is None or launch.case.case_id.startswith(options.case))
        and options.launch in (None, launch.plan_index)
        and options.campaign in (None, launch.campaign)
    ]


def _must_match(plans: Mapping[str, Sequence[PlannedLaunch]], options: argparse.Namespace) -> None:
    from scaleproof.spec.errors import SpecError

    if not any(plans.values()):
        selection = [
            f"--{name} {value}"
            for name, value in (
                ("case", options.case),
                ("launch", options.launch),
                ("campaign", options.campaign),
            )
            if value is not None
        ]
        raise SpecError(
            f"no launch fits {' '.join(selection)}; --dry-run lists the cases and how often each is launched"
        )


def _must_be_runnable(plans: Mapping[str, Sequence[PlannedLaunch]], allocated: AllocatedNodes | None) -> None:
    """SpecError if a case requested by its id cannot run here. As part of an experiment such a case is recorded as not
    runnable instead."""
    from scaleproof.launch.preflight.case_preflight import obstacle
    from scaleproof.spec.errors import SpecError

    obstacles = [
        obstacle(launch.case, launch.programs, allocated) for launches in plans.values() for launch in launches
    ]
    if obstacles and obstacles[0] is not None and all(obstacles):
        raise SpecError(f"not runnable here: {obstacles[0].reason}; {obstacles[0].advice}")


def _verifier(results: Path) -> Callable[[Record, pa.Table], Failure | None] | None:
    """A check that fails launches with rates beyond this machine's memory bandwidth; None if that was not measured."""
    profile = profile_of_this_machine(results)
    if profile is None:
        return None
    from scaleproof.calibrate.attainable import impossible

    return lambda record, samples: impossible(record, samples.to_pandas(), profile)


def _simulator(results: Path, cases: Sequence[AnyCase]) -> Simulator | None:
    """For launches that are predicted, or that replay beside a strategy whose own work is; None where there are none:
    its import takes half a second."""
    from scaleproof.spec.launch_kind import replays

    if not any(case.plugin("fabric").predicted or replays(case) for case in cases):
        return None
    from scaleproof.simulate.predict import Predictor

    return Predictor(results)


def _refusal(results: Path) -> Callable[[AnyCase], Obstacle | None]:
    """A check that refuses cases which need more than this machine can carry, if that was measured."""
    from scaleproof.calibrate.cluster_capacity import read_capacity
    from scaleproof.launch.obstacle import Obstacle
    from scaleproof.record.digest import machine_id

    capacity = read_capacity(results)

    def refuse(case: AnyCase) -> Obstacle | None:
        if capacity is None or case.program != "train":
            return None  # before an import that takes half a second
        from scaleproof.calibrate.needed_dilation import too_much

        reason = too_much(case, capacity, results / "machines" / machine_id())
        return Obstacle(*reason, requirement="capacity of the machine") if reason else None

    return refuse


def _run(
    suite: Suite,
    experiment: str,
    launches: Sequence[PlannedLaunch],
    size: str,
    options: argparse.Namespace,
    rule: Sequential | None,
    allocated: AllocatedNodes | None,
) -> PlanOutcome:
    """Run the launches of one experiment and print a summary."""
    from scaleproof.core.launch_spec import STALL_S
    from scaleproof.launch.progress import progress_on_terminal
    from scaleproof.launch.sequential_stopping import fixed_number
    from scaleproof.launch.supervisor import run_plan
    from scaleproof.record.stops import write_stops

    limits, campaign = suite.experiment(experiment).size(size), launches[0].campaign
    title = f"{suite.name} {experiment} {size}"
    if limits.campaigns > 1:
        title += f" campaign {campaign} ({limits.campaigns} planned)"
    if rule is not None:
        rule.allocated = allocated
    outcome = run_plan(
        list(launches),
        options.results,
        size=size,
        deadline_s=limits.deadline_s,
        progress=progress_on_terminal(title),
        again=options.again,
        more=rule.more if rule else None,
        verify=_verifier(options.results),
        stall_s=limits.stall_s or STALL_S,
        simulator=_simulator(options.results, [launch.case for launch in launches]),
        refuse=_refusal(options.results),
        allocated=allocated,
        on_node_loss=suite.experiment(experiment).on_node_loss,
        near_cores_s=options.near_cores,
        timed=suite.experiment(experiment).runs_alone(size),
    )
    if rule is None and not _is_part(options):
        store = open_store(options.results)
        write_stops(options.results, fixed_number(suite, experiment, size, store, allocated, campaign))
    _print_outcome(title, outcome)
    return outcome


def _print_outcome(title: str, outcome: PlanOutcome) -> None:
    print(
        f"{title}: {outcome.planned} launches: {outcome.skipped} finished before, {outcome.completed} done, "
        f"{outcome.failed} failed, {outcome.not_runnable} not runnable here",
        flush=True,
    )
    if outcome.stopped:
        print(outcome.stopped, file=sys.stderr)
