"""What a person sees while launches run: a bar with counts and time left, or plain lines where nobody watches a
terminal."""

from __future__ import annotations

import sys
import time
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from scaleproof.core.record_schema import Record
from scaleproof.spec.units import format_seconds


class Progress(Protocol):
    """Called by the supervisor when something happens."""

    def begin(self, planned: int, finished: int) -> None:
        """`planned` launches, of which `finished` have a record already; called again when more are planned, with those
        that ended since counted."""

    def note(self, text: str) -> None:
        """One line for the user: a warning, what was cleaned up."""

    def ended(self, record: Record) -> None:
        """One more launch has its record."""

    def finish(self) -> None:
        """Nothing more comes."""


def failure_line(record: Record) -> str:
    """One line about a launch that has no result."""
    case, failure = record.case, record.failure
    name = f"{case.arm} ({case.ranks} ranks, repetition {record.plan_index})"
    if failure is None:
        return f"{name}: {record.status}"
    where = (
        ""
        if failure.rank < 0
        else f" rank {failure.rank}" + (f" step {failure.step} in {failure.operation!r}" if failure.operation else "")
    )
    advice = f"; {failure.advice}" if failure.advice else ""
    return f"{name}: {failure.code}{where}: {failure.message}{advice} [{record.launch}]"


class Silent:
    """Nobody watches."""

    def begin(self, planned: int, finished: int) -> None:
        """See Progress."""

    def note(self, text: str) -> None:
        """See Progress."""

    def ended(self, record: Record) -> None:
        """See Progress."""

    def finish(self) -> None:
        """See Progress."""


class Lines:
    """Plain lines on stderr, at most one every `every_s` for launches that went well."""

    def __init__(self, title: str, every_s: float = 5.0) -> None:
        self.title, self.every_s = title, every_s
        self._planned = self._done = self._failed = 0
        self._began = self._spoke = 0.0

    def begin(self, planned: int, finished: int) -> None:
        """See Progress."""
        self._planned, self._done = planned, finished
        if self._began:
            return
        self._began = self._spoke = time.monotonic()
        self.note(f"{planned} launches, {finished} finished before")

    def note(self, text: str) -> None:
        """See Progress."""
        print(f"{self.title}: {text}", file=sys.stderr, flush=True)

    def ended(self, record: Record) -> None:
        """See Progress."""
        self._done += 1
        if record.status != "ok":
            self._failed += 1
            self.note(failure_line(record))
        if time.monotonic() - self._spoke > self.every_s:
            self._count()

    def finish(self) -> None:
        """See Progress."""
        self._count()

    def _count(self) -> None:
        self._spoke = time.monotonic()
        elapsed = format_seconds(self._spoke - self._began)
        self.note(f"{self._done}/{self._planned} launches after {elapsed}, {self._failed} without a result")


class Bar:
    """One line that moves, with failures printed above it."""

    def __init__(self, title: str, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[failed]}"),
        )
        # Redrawn twice a second: the bar runs beside what is measured.
        self._bar = RichProgress(*columns, console=console, refresh_per_second=2)
        self._title, self._failed, self._task = title, 0, self._bar.add_task(title, total=None, failed="")

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
            self.note(failure_line(record))
        self._bar.update(self._task, advance=1, failed=f"{self._failed} without a result" if self._failed else "")

    def finish(self) -> None:
        """See Progress."""
        self._bar.stop()


def progress_on_terminal(title: str) -> Progress:
    """A bar on a terminal, lines elsewhere; both on stderr."""
    console = Console(stderr=True)
    return Bar(title, console) if console.is_terminal else Lines(title)
