"""Shows one launch: status, failure, ranks, checks, warnings, end of the log, and the command that repeats it."""

from __future__ import annotations

import argparse
import shlex
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleproof.calibrate.attained_rate import rate_lines
from scaleproof.commands.common import open_store, print_table, results_argument
from scaleproof.commands.show_stall import stall_lines

if TYPE_CHECKING:
    from scaleproof.core.record_schema import Failure, Record
    from scaleproof.record.store import Store

HELP = "one launch: status, failure, log, how to run it again"
EXAMPLE = "scaleproof show 3f9a --log 1"
TAIL = 15
"""Lines of the log that are shown without --log."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("run", metavar="RUN", help="a launch's id, or its first characters; pages and runs.csv name it")
    results_argument(parser)
    parser.add_argument("--log", type=int, metavar="R", help="print the whole log of rank R instead")


def main(options: argparse.Namespace) -> int:
    """Print the launch, or one log."""
    from scaleproof.spec.errors import SpecError

    store = open_store(options.results)
    record, folder = store.load(options.run)
    if options.log is None:
        _print(record, folder, store)
        return 0
    log = folder / f"rank-{options.log}.log"
    if not log.is_file():
        ranks = ", ".join(
            sorted(path.name.removeprefix("rank-").removesuffix(".log") for path in folder.glob("rank-*.log"))
        )
        raise SpecError(f"launch {record.launch} has no log of rank {options.log}; it has those of: {ranks or 'none'}")
    with log.open(errors="replace") as lines:
        for line in lines:
            print(printable(line))
    return 0


def printable(line: str) -> str:
    """A line of a log, with characters replaced that could control the terminal."""
    return "".join(
        character if character.isprintable() or character == "\t" else "\N{REPLACEMENT CHARACTER}"
        for character in line.rstrip("\r\n")
    )


def _evidence(record: Record, results: Path) -> str:
    """The evidence with the label from suite validation; launches of that suite itself have none."""
    from scaleproof.claims.claims_yaml import VALIDATION
    from scaleproof.claims.evidence_labels import Findings

    label = None if record.case.suite == VALIDATION else Findings.read(results).label([record])
    return record.evidence + (f" ({label.text})" if label else "")


def _print(record: Record, folder: Path, store: Store) -> None:
    from scaleproof.record.machine import read_profile
    from scaleproof.record.read import UNREADABLE
    from scaleproof.report.inputs import lines as input_lines
    from scaleproof.report.nodes import lines as node_lines

    results = store.results
    _print_case(record, results)
    if record.status == "ok":
        try:
            samples = store.frame(record)
        except UNREADABLE as error:
            print(f"samples not readable: {printable(str(error))}")
        else:
            for line in rate_lines(record, samples, read_profile(results, record.machine)):
                print(line)
    if record.failure:
        _print_failure(record.failure)
    for line in [*stall_lines(record), *node_lines(record)]:
        print(printable(line))
    _print_ranks(record)
    failed = [check for check in record.checks if not check.passed]
    print(f"checks: {len(record.checks) - len(failed)} passed, {len(failed)} failed")
    for check in failed:
        print(f"  rank {check.rank} {check.name}: {printable(check.detail)}")
    for line in input_lines(record):
        print(printable(line))
    _print_surroundings(record)
    for warning in record.warnings:
        print(f"warning {warning.code}: {printable(warning.message)}; {warning.advice}")
    if "prediction" in record.transport:
        _print_prediction(record.transport["prediction"])
    else:
        _print_tail(record, folder)
    print(f"record: {folder}")
    print(f"run it again:\n  {shlex.join(_command(record, results))}{_remark_on_suite(record)}")


def _print_case(record: Record, results: Path) -> None:
    from scaleproof.spec.tags import NONE, tags_of

    case = record.case
    print(
        f"launch {record.launch}: {record.status}, {record.wall_s:.1f} s from {record.started_at}, "
        f"{_evidence(record, results)} on machine {record.machine}"
    )
    print(
        f"case {record.case_id}: {case.suite} {case.experiment} {record.size}, arm {case.arm}, repetition "
        f"{record.plan_index}, seed {record.seed}"
    )
    fields = {
        name: value
        for name, value in case.flat().items()
        if value is not None and name not in ("suite", "experiment", "arm")
    }
    print("  " + ", ".join(f"{name} {value}" for name, value in fields.items()))
    print("tags: " + ", ".join(f"{axis} {tag}" for axis, tag in tags_of(case).items() if tag != NONE))


def _print_failure(failure: Failure) -> None:
    location = f" at rank {failure.rank}" if failure.rank >= 0 else ""
    print(
        f"failure: {failure.code}{location}, step {failure.step}, in {failure.operation or 'nothing named'}: "
        f"{printable(failure.message)}"
    )
    print(f"advice: {failure.advice}")


def _print_surroundings(record: Record) -> None:
    """Preflight, bytes on the wire and environment, a line each; checks that passed are only counted."""
    from scaleproof.record.core_distance import distance_sentence

    if record.preflight:
        remarks = [check for check in record.preflight if not check.passed or check.advice]
        total = len(record.preflight)
        print(f"preflight: {total - len(remarks)} of {total} checks passed without a remark")
        for check in remarks:
            outcome = {True: "warning", False: "FAILED", None: "not readable"}[check.passed]
            print(f"  {check.code} {outcome}: {printable(check.message)}; {printable(check.advice)}")
    _print_wire(record)
    environment = record.environment
    if "libraries" in environment:
        unreadable = ", ".join(environment.get("not_readable", {})) or "nothing"
        padding, size = environment.get("padding_bytes"), environment.get("variables_bytes")
        print(
            f"environment: {len(environment['libraries'])} shared libraries alike on all ranks, {size} B of variables "
            f"({padding} B padding)"
        )
        print(f"  not readable here: {unreadable}")
    if distance := environment.get("load", {}).get("before", {}).get("core_distance"):
        print(f"cores: {distance_sentence(distance)}")
    if difference := environment.get("difference"):
        print(f"difference from the commit: {difference['file']} in the results folder ({difference['nbytes']} B)")


def _print_prediction(prediction: dict[str, Any]) -> None:
    """The inputs of a simulated launch."""
    is_drawn = prediction["draw"] is not None
    draw = "inputs drawn from their uncertainty" if is_drawn else "every input at its value"
    print(
        f"predicted in {prediction['took_s']:.3g} s, {draw}: cluster {prediction['cluster']}, collectives by "
        f"{prediction['algorithm'] or 'none'}"
    )
    if profile := prediction["profile"]:
        print(
            f"  compute: {profile['step_s']:.4g} s a step without exchange, of {profile['node']}; "
            f"{printable(profile['taken'])}"
        )
    print(f"  costs: {printable(prediction['costs'])}")
    for parameter in prediction["parameters"]:
        low, high = parameter["low"], parameter["high"]
        interval = "" if low is None or high is None else f" [{low:.3g}, {high:.3g}]"
        drawn = f", drawn {parameter['drawn']:.4g}" if is_drawn else ""
        print(f"    {parameter['name']}: {parameter['value']:.4g}{interval}{drawn}")
    for assumption in prediction["assumed"]:
        print(f"  assumed: {printable(assumption)}")


def _print_wire(record: Record) -> None:
    from scaleproof.record.wire import traffic_by_namespace
    from scaleproof.spec.units import format_bytes

    for part in traffic_by_namespace(record.network):
        ranks = ", ".join(map(str, part.ranks))
        share = "" if part.share is None else f", {part.share:.3f} per byte requested"
        by = (
            f"{part.interface} sent {format_bytes(part.wire_bytes)}{share}"
            if part.interface
            else "no interface sent a byte"
        )
        print(
            f"wire of ranks {ranks}: requested {format_bytes(part.asked_bytes)} of interface "
            f"{record.case.interface}; {by}"
        )


def _command(record: Record, results: Path) -> list[str]:
    """The command that repeats the launch, into the folder that its record was read from."""
    return record.command if results == Path("results") else [*record.command, "--results", str(results)]


def _remark_on_suite(record: Record) -> str:
    """A remark if the suite is not in the usual folders: the record has its name only, so its path must be typed."""
    from scaleproof.spec.suite import list_suites

    if any(folder.name == record.case.suite for folder in list_suites()):
        return ""
    return (
        f"\n  (no suite {record.case.suite!r} is found here: write its path, or add --suites with the folder around it)"
    )


def _print_ranks(record: Record) -> None:
    rows = [
        [
            str(rank.rank),
            rank.status,
            rank.code or "",
            _end(rank.exit_code, rank.signal),
            str(rank.step),
            rank.operation,
            str(rank.pid),
            printable(rank.message),
        ]
        for rank in record.ranks
    ]
    if rows:
        print_table(["rank", "status", "code", "ended with", "last step", "last operation", "pid", "message"], rows)


def _end(exit_code: int | None, signal_number: int | None) -> str:
    import signal

    if signal_number is not None:
        return signal.Signals(signal_number).name
    return "" if exit_code is None else f"exit code {exit_code}"


def _print_tail(record: Record, folder: Path) -> None:
    """The log of the rank that failed first, else of rank 0."""
    rank = max(record.failure.rank, 0) if record.failure else 0
    log = folder / f"rank-{rank}.log"
    if not log.is_file():
        print(f"rank {rank} left no log")
        return
    with log.open(errors="replace") as lines:
        tail = deque(lines, maxlen=TAIL)
    print(f"log of rank {rank}, {f'last {len(tail)} lines' if tail else 'empty'} (all: --log {rank}):")
    for line in tail:
        print(f"  {printable(line)}")
