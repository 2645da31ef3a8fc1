"""Checks whether an experiment can be measured here: names, ports, pairs of ranks, disk, memory, cores, clocks, speed.
It starts no launch and records nothing."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.commands.common import allocation_arguments, nodes_of_run, planned_arguments, print_table, size_of

if TYPE_CHECKING:
    from scaleproof.core.record_schema import PreflightCheck
    from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
    from scaleproof.spec.case import AnyCase

HELP = "checks before an experiment: names, pairs of ranks, ports, memory, clocks, speed"
EXAMPLE = "scaleproof preflight das2016 throughput"
_OUTCOMES = ("passed", "not readable", "warning", "FAILED")
"""From the best to the worst."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    planned_arguments(parser)
    allocation_arguments(parser)
    parser.add_argument("--json", action="store_true", help="for machines: one JSON object on stdout")


def main(options: argparse.Namespace) -> int:
    """0 if no check failed, else 1."""
    from scaleproof.commands.run import plan_experiments
    from scaleproof.launch.preflight.case_preflight import obstacle
    from scaleproof.spec.suite import load_suite

    size = size_of(options)
    suite = load_suite(options.suite, options.suites)
    allocated = nodes_of_run(options)
    results: dict[str, dict[str, list[PreflightCheck]]] = {}
    for name, launches in plan_experiments(suite, options.experiment, size).items():
        runnable = [launch.case for launch in launches if obstacle(launch.case, launch.programs, allocated) is None]
        results[name] = _experiment(runnable, options.results, allocated)
        if not options.json:
            title = f"{suite.name} {name} {size}: {len(runnable)} of {len(launches)} launches can run here"
            print_table(["for", "check", "outcome", "what was found", "what to do"], _rows(results[name]), title)
    if options.json:
        print(
            json.dumps(
                {
                    name: {group: [check.model_dump() for check in checks] for group, checks in groups.items()}
                    for name, groups in results.items()
                },
                indent=2,
            )
        )
    return int(
        any(check.passed is False for groups in results.values() for checks in groups.values() for check in checks)
    )


def _experiment(
    cases: list[AnyCase], results: Path, allocated: AllocatedNodes | None
) -> dict[str, list[PreflightCheck]]:
    """Checks by group of launches. Checks that are made per case are represented by the worst one."""
    from scaleproof.launch.preflight.experiment_preflight import Preflight

    worst: dict[str, dict[str, PreflightCheck]] = {}
    # Nodes of an allocation can see the results folder; for this machine alone, /tmp is enough.
    with tempfile.TemporaryDirectory(
        prefix=".scaleproof-preflight-", dir=results.resolve() if allocated is not None else None
    ) as staging:
        preflight = Preflight(results, Path(staging), allocated)
        preflight.expect(cases)
        for case in {case.case_id: case for case in cases}.values():
            group = worst.setdefault(f"{case.launcher} on {case.interface}", {})
            for check in preflight.of(case):
                group[check.code] = max(group.get(check.code, check), check, key=_severity)
    return {group: list(checks.values()) for group, checks in worst.items()}


def _severity(check: PreflightCheck) -> int:
    """Index in _OUTCOMES."""
    if check.passed is False:
        return 3
    if check.advice:
        return 2
    return 1 if check.passed is None else 0


def _rows(groups: dict[str, list[PreflightCheck]]) -> list[list[str]]:
    return [
        [group, check.code, outcome(check), check.message, check.advice]
        for group, checks in groups.items()
        for check in checks
    ]


def outcome(check: PreflightCheck) -> str:
    """The outcome as the table shows it."""
    return _OUTCOMES[_severity(check)]
