"""What `python -m benchmarks.launch_factors` changes about a launch really changes, and only for that launch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager
from typing import Any

import pytest

from benchmarks.launch_factors import (
    BEGIN,
    DOCS,
    END,
    ROWS,
    TASKS,
    VALUES,
    fixed_addresses,
    no_huge_pages,
    pinned,
    table,
)


def child_sees(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("factor", "code", "inside", "outside"),
    [
        (fixed_addresses(), "print(int(open('/proc/self/personality').read(), 16) & 0x40000)", "262144", "0"),
        (
            no_huge_pages(),
            "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('THP_enabled')][0])",
            "0",
            "1",
        ),
    ],
    ids=["fixed_addresses", "no_huge_pages"],
)
def test_a_factor_holds_for_processes_that_start_meanwhile(
    factor: AbstractContextManager[None], code: str, inside: str, outside: str
) -> None:
    with factor:
        assert child_sees(code) == inside
    assert child_sees(code) == outside


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_pinned_ranks_have_a_core_of_their_own() -> None:
    code = """if True:
        import os, time
        children = []
        for _ in range(2):
            children.append(os.fork())
            if not children[-1]:
                time.sleep(30)
                os._exit(0)
        until = time.monotonic() + 20
        while time.monotonic() < until and any(len(os.sched_getaffinity(child)) > 1 for child in children):
            time.sleep(0.05)
        print(*(",".join(map(str, os.sched_getaffinity(child))) for child in children))
        for child in children:
            os.kill(child, 9)
    """
    with pinned():
        assert sorted(child_sees(code).split()) == [str(core) for core in sorted(os.sched_getaffinity(0))[:2]]


def test_the_table_compares_each_factor_with_launches_as_they_are() -> None:
    text = table(made_up())
    rows = [line for line in text.splitlines() if line.startswith(tuple(f"| {name}, " for name, _ in ROWS))]
    assert len(rows) == sum(name == other for name, _ in ROWS for other, _ in TASKS)
    assert text.startswith(BEGIN) and text.endswith(END)
    [row] = [row for row in rows if row.startswith("| mpi, 1 MiB | near cores")]
    assert "| 0.50 (0.50 to 0.50) |" in row and "| 0 % (0 to 0) |" in row and "| 100 ns |" in row


def test_the_docs_state_what_follows_from_the_kept_values() -> None:
    assert table(json.loads(VALUES.read_text())) in DOCS.read_text()


def made_up() -> dict[str, Any]:
    """Launches on near cores take half of the time."""
    launches = [
        {
            "block": block,
            "transport": name,
            "factor": factor.title,
            "round_trip_ns": 100 if factor.title == "near cores" else 500,
            "waited_s": None,
            "seconds": {key: 0.5 if factor.title == "near cores" else 1.0 for other, key in ROWS if other == name},
        }
        for block in range(6)
        for name, factor in TASKS
    ]
    return {"date": "2026-01-01", "machine": {"cpu": "a cpu"}, "launches": launches}
