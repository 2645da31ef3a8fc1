"""The flight record of a failed launch as lines: the rank that was silent first, what each rank did and for which one
it waited, and the stack of the first silent rank."""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scaleproof.core.record_schema import Record
    from scaleproof.core.stall_schema import RankDoing

FRAMES = 12
"""Lines of the first silent rank's stack; the record and the log have all."""

WIDTH = 90
"""Characters of a cell."""


def stall_lines(record: Record) -> list[str]:
    """The lines of a launch; none without a flight record."""
    stall = record.stall
    if stall is None:
        return []
    lines = [f"first silent: {f'rank {stall.first_silent}' if stall.first_silent >= 0 else 'no rank'}: {stall.why}"]
    head = ("rank", "step", "waits for", "still for", "operation", "innermost frame")
    rows = [head, *(_row(doing) for doing in stall.ranks)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines += [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    silent = next((doing for doing in stall.ranks if doing.rank == stall.first_silent and len(doing.stack) > 1), None)
    if silent is not None:
        lines.append(f"stack of rank {silent.rank} (the log has the stacks of all threads: --log {silent.rank}):")
        lines += [f"  {line}" for line in main_thread(silent.stack)[:FRAMES]]
    return lines


def main_thread(stack: list[str]) -> list[str]:
    """The frames of the current thread, which is the main one; of the first thread if none is marked as current. A
    traceback is returned unchanged."""
    starts = [number for number, line in enumerate(stack) if "Thread " in line or line.startswith("Current thread ")]
    if not starts:
        return stack
    start = next((number for number in starts if stack[number].startswith("Current thread ")), starts[0])
    end = next((number for number in starts if number > start), len(stack))
    return stack[start:end]


def _row(doing: RankDoing) -> tuple[str, ...]:
    waits = f"rank {doing.waits_for}" if doing.waits_for >= 0 else ""
    innermost = f"no stack: {doing.no_stack}" if doing.no_stack else _innermost(doing.stack)
    return str(doing.rank), str(doing.step), waits, f"{doing.still_s:.1f} s", doing.operation, innermost


def _innermost(stack: list[str]) -> str:
    """The first frame of a thread, or the last line of a traceback, shortened for a table."""
    if len(stack) < 2:  # in older records one line that says why there is no stack
        return "".join(stack)
    if stack[0].startswith("Traceback"):
        return shorten(stack[-1], WIDTH, placeholder=" ...")
    frames = [line.strip() for line in main_thread(stack)[1:]]
    return frames[0].replace("File ", "").replace('"', "").replace(", line ", ":") if frames else ""
