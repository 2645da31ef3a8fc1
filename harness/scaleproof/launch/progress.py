"""Progress of a run on stderr: a bar with counts and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn, track
from rich.progress import Progress as RichProgress

from scaleproof.core.record_schema import Record
from scaleproof.spec.units import format_seconds

Item = TypeVar("Item")


class Progress(Protocol):
    """Called by the supervisor when something happens."""

    def begin(self, planned: int, finished: int) -> None:
        """`planned` launches, of which `finished` have a record already. Called again when more are planned; `finished`
        then includes those that ended since."""

    def note(self, text: str) -> None:
        """One line for the user: a warning, what was cleaned up."""

    def ended(self, record: Record) -> None:
        """A launch has its record."""

    def finish(self) -> None:
        """The run is over."""


def failure_line(record: Record) -> str:
    """One line about a launch that has no result."""
    case, failure = record.case, record.failure
    name = f"{case.arm} ({case.ranks} ranks, repetition {record.plan_index})"
    if failure is None:
        return f"{name}: {record.status}"
    position = ""
    if failure.rank >= 0:
        position = f" rank {failure.rank}"
        position += f" step {failure.step} in {failure.operation!r}" if failure.operation else ""
    advice = f"; {failure.advice}" if failure.advice else ""
    return f"{name}: {failure.code}{position}: {failure.message}{advice} [{record.launch}]"


class Told:
    """What the user has been told: what keeps hundreds of launches from running here is one line and not hundreds."""

    def __init__(self) -> None:
        self._obstacles = set[str]()

    def line(self, record: Record) -> str:
        """The line about a launch without a result; empty where an earlier one says the same."""
        if record.status != "not_runnable" or record.failure is None:
            return failure_line(record)
        if record.failure.message in self._obstacles:
            return ""
        self._obstacles.add(record.failure.message)
        return f"{failure_line(record)}; others like it are only counted"


def tracked(title: str, items: Sequence[Item], every_s: float = 5.0) -> Iterable[Item]:
    """The items, with a bar on a terminal and a line from time to time elsewhere."""
    console = Console(stderr=True)
    return track(items, title, console=console) if console.is_terminal else _with_lines(title, items, every_s)


def _with_lines(title: str, items: Sequence[Item], every_s: float) -> Iterator[Item]:
    reported = time.monotonic()
    for number, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - reported > every_s:
            reported = time.monotonic()
            print(f"{title}: {number}/{len(items)}", file=sys.stderr, flush=True)


class Silent:
    """Shows nothing."""

    def begin(self, planned: int, finished: int) -> None:
        """See Progress."""

    def note(self, text: str) -> None:
        """See Progress."""

    def ended(self, record: Record) -> None:
        """See Progress."""

    def finish(self) -> None:
        """See Progress."""


class Lines:
    """Plain lines on stderr. Launches that went well are only counted, in one line every `every_s` seconds."""

    def __init__(self, title: str, every_s: float = 5.0) -> None:
        self.title, self.every_s = title, every_s
        self._told = Told()
        self._planned = self._ended = self._failed = 0
        self._began_at = self._counted_at = 0.0

    def begin(self, planned: int, finished: int) -> None:
        """See Progress."""
        self._planned, self._ended = planned, finished
        if self._began_at:
            return
        self._began_at = self._counted_at = time.monotonic()
        self.note(f"{planned} launches, {finished} finished before")

    def note(self, text: str) -> None:
        """See Progress."""
        print(f"{self.title}: {text}", file=sys.stderr, flush=True)

    def ended(self, record: Record) -> None:
        """See Progress."""
        self._ended += 1
        if record.status != "ok":
            self._failed += 1
            if line := self._told.line(record):
                self.note(line)
        if time.monotonic() - self._counted_at > self.every_s:
            self._print_counts()

    def finish(self) -> None:
        """See Progress."""
        self._print_counts()

    def _print_counts(self) -> None:
        self._counted_at = time.monotonic()
        elapsed = format_seconds(self._counted_at - self._began_at)
        self.note(f"{self._ended}/{self._planned} launches after {elapsed}, {self._failed} without a result")


class Bar:
    """A progress bar, with failures printed above it."""

    def __init__(self, title: str, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[failed]}"),
        )
        # Redrawn only twice a second: drawing takes processor time from the launches that are measured.
        self._bar = RichProgress(*columns, console=console, refresh_per_second=2)
        self._told, self._title, self._failed = Told(), title, 0
        self._task = self._bar.add_task(title, total=None, failed="")

    def begin(self, planned: int, finished: int) -> None:
        """See Progress."""
        self._bar.start()
        self._bar.update(self._task, total=planned, completed=finished)

    def note(self, text: str) -> None:
        """See Progress."""
        self._bar.console.print(f"{self._title}: {text}", highlight=False, markup=False)

    def ended(self, record: Record) -> None:
        """See Progress."""
        if record.status != "ok":
            self._failed += 1
            if line := self._told.line(record):
                self.note(line)
        self._bar.update(self._task, advance=1, failed=f"{self._failed} without a result" if self._failed else "")

    def finish(self) -> None:
        """See Progress."""
        self._bar.stop()


def progress_on_terminal(title: str) -> Progress:
    """A bar on a terminal, lines elsewhere; both on stderr."""
    console = Console(stderr=True)
    return Bar(title, console) if console.is_terminal else Lines(title)
