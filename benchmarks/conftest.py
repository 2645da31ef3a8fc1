"""One interleaved run serves all benchmarks; its table is written at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.interleaved import Measured, measure
from benchmarks.table import markdown, summary, write


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of this folder."""
    group = parser.getgroup("transports")
    group.addoption("--launches", type=int, default=6, help="launches per arm (6 are the fewest that give an interval)")
    group.addoption("--seed", type=int, default=2016, help="order of the arms in each block")
    group.addoption(
        "--into",
        type=Path,
        default=Path("results/bench"),
        help="folder of bench.json and bench.md (default: results/bench)",
    )


@pytest.fixture(scope="session")
def recording() -> dict[str, Any]:
    """Filled by the benchmark of the recorder."""
    return {}


@pytest.fixture(scope="session")
def measured(request: pytest.FixtureRequest, recording: dict[str, Any]) -> Iterator[Measured]:
    """All launches of all arms."""
    terminal = request.config.get_terminal_writer()
    launches = measure(
        request.config.getoption("--launches"),
        request.config.getoption("--seed"),
        lambda text: terminal.line(f"\n{text}"),
    )
    yield launches
    result = summary(launches, recording)
    write(result, request.config.getoption("--into"))
    terminal.line("\n\n" + markdown(result))
