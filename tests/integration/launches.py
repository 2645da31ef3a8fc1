"""Plans of small launches for tests of the supervisor."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.launch.teardown import end_processes, processes, shared_memory
from scaleproof.paths import IMPORT_ROOT
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import case_from
from tests.waiting import wait_until

WITHIN_S = 10.0
"""From a fault to the end of its launch, once the fault can be seen."""
FAULTY = Path(__file__).parent / "faulty"


def small_case(arm: str = "healthy", **fields: Any) -> Any:
    """Two ranks that all-reduce 4 KiB over shared memory."""
    base = {
        "program": "collective",
        "suite": "tests",
        "experiment": "faults",
        "ranks": 2,
        "transport": "shm",
        "collective": "ring",
        "sizes": [4096],
    }
    return case_from({**base, "arm": arm, **fields})


def launches(cases: list[Any], repetitions: int = 1) -> list[PlannedLaunch]:
    """All cases once per repetition, the seed different in each launch."""
    pairs = [(index, case) for index in range(repetitions) for case in cases]
    return [PlannedLaunch(case, index, 1000 + order, order) for order, (index, case) in enumerate(pairs)]


def use_faulty_program(patch: pytest.MonkeyPatch, fault: str, folder: Path) -> None:
    """From now on ranks run faulty_program.py."""
    folder.mkdir(exist_ok=True)
    for name, value in {
        "PYTHONPATH": f"{FAULTY}{os.pathsep}{IMPORT_ROOT}",
        "FAULT": fault,
        "FAULT_FOLDER": str(folder),
    }.items():
        patch.setenv(name, value)


class Timekeeper:
    """A Progress that notes when each launch had its record."""

    def __init__(self) -> None:
        self.ended_at: dict[str, float] = {}
        self.notes: list[str] = []

    def begin(self, planned: int, finished: int) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)

    def ended(self, record: Record) -> None:
        self.ended_at[record.launch] = time.monotonic()

    def finish(self) -> None: ...


def assert_nothing_left(results: Path, ids: list[str]) -> None:
    """No process, no shared memory, no staging folder, no child of this process."""
    assert not [item for launch in ids for item in (*processes(launch), *shared_memory(launch))]
    assert not list((results / "staging").glob("*"))
    assert [(child.status(), child.name()) for child in psutil.Process().children(recursive=True)] == []


class Living:
    """A launch that runs in a thread; `launch` once its folder is there."""

    def __init__(self, results: Path, case: Any, **options: Any) -> None:
        self.results, self.records = results, list[Record]()
        self.watch = Timekeeper()
        self.thread = threading.Thread(target=self._run, args=(case, options))

    def _run(self, case: Any, options: dict[str, Any]) -> None:
        outcome = run_plan(
            launches([case]), self.results, size="ci", progress=self.watch, **{"deadline_s": 120.0, **options}
        )
        self.records = [Store(self.results).load(launch)[0] for launch in outcome.launches]

    def folder(self, within_s: float = 90.0) -> Path:
        """Of the launch itself, not of the preflight before it."""

        def started() -> Path | None:
            files = (self.results / "staging").glob("*/launch.json")
            return next((path.parent for path in files if '"size": "ci"' in path.read_text()), None)

        folder = wait_until(started, "a launch has started", within_s)
        assert folder is not None
        return folder


@contextmanager
def living(results: Path, case: Any, **options: Any) -> Iterator[Living]:
    launch = Living(results, case, **options)
    launch.thread.start()
    try:
        yield launch
    except BaseException:
        for folder in (results / "staging").glob("*"):
            end_processes(folder.name, 0.0)
        raise
    finally:
        launch.thread.join(60)
    assert not launch.thread.is_alive()
    assert_nothing_left(results, [record.launch for record in launch.records])
