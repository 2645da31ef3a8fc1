"""Schedules of pipelines: which worker carries out which pass of which micro-batch, and when. Prints a schedule with
its time, its gaps and the activations that workers hold, and draws it with --out; without SCHEME it compares all.

Times are in forward passes of one micro-batch at one stage. Nothing is run: a pass begins as soon as its worker is free
and what it needs is there."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.commands.common import print_table
from scaleproof.spec.errors import SpecError

if TYPE_CHECKING:
    from scaleproof.pipelines.schedule import Pass, Schedule
    from scaleproof.pipelines.timing import PassTimes, Timeline

HELP = "schedules of pipelines: order of passes, gaps, activations held; a picture on request"
EXAMPLE = """scaleproof pipeline chimera --stages 4 --micro-batches 4
  scaleproof pipeline --stages 8 --micro-batches 32 --backward 1.7       all schemes side by side
  scaleproof pipeline --stages 8 --micro-batches 32 --memory 8           those that hold activations of 8 at most
  scaleproof pipeline chimera --stages 8 --micro-batches 8 --pairs 2 --out chimera.svg"""
SUFFIXES = (".png", ".svg", ".pdf", ".json")
CELL = 3
"""Characters of a forward pass on the terminal."""
WIDEST = 400
"""Characters of a row, above which the schedule is not printed."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument(
        "scheme", metavar="SCHEME", nargs="?", help="gpipe, dapple, chimera, ... (default: compare all)"
    )
    parser.add_argument("--stages", type=int, required=True, metavar="D", help="stages, each on a worker of its own")
    parser.add_argument("--micro-batches", type=int, required=True, metavar="N", help="of one iteration")
    parser.add_argument(
        "--pairs", type=int, default=1, metavar="F", help="pairs of pipelines in opposite directions (default: 1)"
    )
    parser.add_argument(
        "--backward", type=float, default=2.0, metavar="X", help="time of a backward pass (default: 2 forward passes)"
    )
    parser.add_argument(
        "--message", type=float, default=0.0, metavar="X", help="time of a message to the next stage (default: 0)"
    )
    parser.add_argument(
        "--memory",
        type=float,
        metavar="N",
        help="micro-batches whose activations a worker has room for: schedules that hold more are left out",
    )
    parser.add_argument("--recompute", action="store_true", help="repeat the forward pass before each backward pass")
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="FILE",
        help="a picture, FILE.png, FILE.svg or FILE.pdf, or a trace for Perfetto, FILE.json",
    )


def main(options: argparse.Namespace) -> int:
    """Print, draw."""
    from scaleproof.pipelines.schemes import schedule_of
    from scaleproof.pipelines.timing import PassTimes, timeline

    if options.backward <= 0 or options.message < 0:
        raise SpecError("scaleproof pipeline: --backward is above 0, --message is 0 or above")
    if options.out is not None and (options.scheme is None or options.out.suffix not in SUFFIXES):
        raise SpecError(f"--out {options.out}: a picture or trace of one SCHEME, and ends in {', '.join(SUFFIXES)}")
    times = PassTimes(1.0, options.backward, options.message, options.recompute)
    if options.scheme is None:
        return _compare(options, times)
    schedule = schedule_of(options.scheme, options.stages, options.micro_batches, options.pairs)
    _check_memory([schedule], options.memory)
    line = timeline(schedule, times)
    _print_orders(line)
    print_table(COLUMNS, [_row(schedule, options, times)], "")
    if options.out is not None:
        _draw(options, line)
    return 0


COLUMNS = (
    "scheme",
    "time of an iteration",
    "idle share",
    "activations held (micro-batches)",
    "stages a worker",
    "flush",
)


def _compare(options: argparse.Namespace, times: PassTimes) -> int:
    """A row for each scheme; those that the sizes or the memory do not fit are named below."""
    from scaleproof.pipelines.schemes import schedule_of, schemes
    from scaleproof.pipelines.timing import stashed

    made, refused = [], list[str]()
    for name, scheme in schemes().items():
        pairs = options.pairs if scheme.has_pairs else 1
        try:
            schedule = schedule_of(name, options.stages, options.micro_batches, pairs)
        except SpecError as error:
            refused.append(str(error))
            continue
        made.append(schedule)
    _check_memory(made, options.memory)
    fitting = [schedule for schedule in made if options.memory is None or max(stashed(schedule)) <= options.memory]
    refused += [_too_large(schedule) for schedule in made if schedule not in fitting]
    rows = [_row(schedule, options, times) for schedule in fitting]
    print_table(COLUMNS, rows, f"{options.stages} stages, {options.micro_batches} micro-batches an iteration")
    for reason in refused:
        print(f"left out: {reason}")
    return 0


def _check_memory(schedules: Sequence[Schedule], most: float | None) -> None:
    """SpecError, with what would do, where each of them holds activations of more micro-batches."""
    from scaleproof.pipelines.timing import stashed

    if most is None or any(max(stashed(schedule)) <= most for schedule in schedules):
        return
    smallest = min(schedules, key=lambda schedule: max(stashed(schedule)))
    raise SpecError(f"--memory {most:g}: no schedule fits; {_too_large(smallest)}")


def _too_large(schedule: Schedule) -> str:
    from scaleproof.pipelines.timing import stashed

    held = max(stashed(schedule))
    return f"{schedule.scheme} holds activations of {held:g} micro-batches; --memory {held:g} would do"


def _row(schedule: Schedule, options: argparse.Namespace, times: PassTimes) -> list[str]:
    from scaleproof.pipelines.schemes import iteration_time
    from scaleproof.pipelines.timing import stashed, timeline

    held, stages = stashed(schedule), max(len(schedule.held(worker)) for worker in range(len(schedule.orders)))
    stash = f"{min(held):g}" if min(held) == max(held) else f"{min(held):g} to {max(held):g}"
    pairs = schedule.pipelines // 2 if schedule.pipelines > 1 and options.pairs > 1 else 1
    taken = iteration_time(schedule.scheme, options.stages, options.micro_batches, times, pairs)
    idle = max(0.0, 1 - timeline(schedule, times).busy / (taken * len(schedule.orders)))
    return [schedule.scheme, f"{taken:g}", f"{idle:.1%}", stash, str(stages), "yes" if schedule.flush else "no"]


def _print_orders(line: Timeline) -> None:
    """A row for each worker: a number is a forward pass, one in brackets a backward pass, a dot idle time."""
    if line.makespan * CELL > WIDEST:
        print(f"the schedule is too long for a terminal ({line.makespan:g} forward passes); --out draws it")
        return
    for worker, (order, spans) in enumerate(zip(line.schedule.orders, line.spans, strict=True)):
        row = ""
        for each, (start, end) in zip(order, spans, strict=True):
            row += "." * (round(start * CELL) - len(row))
            row += _cell(each, round(end * CELL) - len(row))
        print(f"worker {worker:<3} {row}{'.' * (round(line.makespan * CELL) - len(row))}")
    print("a number: forward pass of this micro-batch; in brackets: backward pass; dots: idle\n")


def _cell(each: Pass, width: int) -> str:
    """As wide as the pass takes."""
    text = ",".join(map(str, each.units))
    text = text if each.direction == "forward" else f"[{text}"
    closing = "]" if each.direction == "backward" else "|"
    return f"{text[: width - 1]:<{max(width - 1, 0)}}{closing}" if width > 1 else text[:width]


def _draw(options: argparse.Namespace, line: Timeline) -> None:
    from scaleproof.core.atomic_write import write_json
    from scaleproof.pipelines.trace import chrome_trace
    from scaleproof.report.figures.pipeline import save

    if options.out.suffix == ".json":
        print(write_json(options.out, chrome_trace(line)))
        return
    title = f"{options.scheme}: {options.stages} stages, {options.micro_batches} micro-batches"
    subtitle = (
        f"a backward pass takes {options.backward:g} forward passes; idle {line.idle_share:.1%} of the time; "
        "faint: backward passes, hatched: pipelines in the other direction"
    )
    save(line, title, subtitle, [options.out])
    print(options.out)
