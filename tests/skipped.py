"""What was skipped: every summary names it with the reason, and in continuous integration a skipped test has failed,
unless it is one of those that cannot run there."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import pytest


class Exempt(NamedTuple):
    """Tests that may be skipped in continuous integration too, and why."""

    pattern: str
    why: str


EXEMPT = [
    Exempt("tests/integration/test_profile_gpu.py*", "the machines have no GPU"),
    Exempt("tests/integration/*[[]nccl*", "the machines have no GPU and their torch no NCCL"),
    Exempt("tests/integration/*[[]torch-mpi*", "released builds of torch have no MPI"),
    Exempt("tests/integration/test_build_osu.py*", "the source of the OSU micro-benchmarks is not in this repository"),
    Exempt("tests/integration/*[[]ucc*", "released builds of torch have no UCC"),
]


def exempt(node_id: str) -> bool:
    return any(fnmatchcase(node_id, each.pattern) for each in EXEMPT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if (
        report.skipped
        and not hasattr(report, "wasxfail")
        and os.environ.get("SCALEPROOF_CI")
        and not exempt(item.nodeid)
    ):
        report.outcome = "failed"
        report.longrepr = f"{reason_of(report)}\nIn continuous integration this test must run (tests/skipped.py)."
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Skipped tests by reason; `tests/...::test_x (3)` are three sets of parameters."""
    by_reason: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for report in terminalreporter.stats.get("skipped", []):
        by_reason[reason_of(report)][report.nodeid.partition("[")[0]] += 1
    if not by_reason:
        return
    terminalreporter.section("skipped, and why")
    for reason, tests in sorted(by_reason.items()):
        terminalreporter.line(reason)
        for name, count in sorted(tests.items()):
            terminalreporter.line(f"    {name} ({count})" if count > 1 else f"    {name}")


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
