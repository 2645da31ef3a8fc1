"""One interleaved run serves all benchmarks; its table is written at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.interleaved import Measured, measure
from benchmarks.table import markdown, summary, write
from benchmarks.tuning import BUDGET_LAUNCHES


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of this folder."""
    group = parser.getgroup("transports")
    group.addoption("--launches", type=int, default=6, help="launches per arm (6 are the fewest that give an interval)")
    group.addoption(
        "--tuning-launches",
        type=int,
        default=BUDGET_LAUNCHES,
        help="launches per setting of a peer before the arms are measured; 0: peers as they are shipped",
    )
    group.addoption(
        "--only", action="append", default=[], help="measure only arms of this name, and the bounds; repeatable"
    )
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
        request.config.getoption("--tuning-launches"),
        request.config.getoption("--only"),
    )
    yield launches
    result = summary(launches, recording)
    write(result, request.config.getoption("--into"))
    terminal.line("\n\n" + markdown(result))


@pytest.fixture(scope="module")
def rows(request: pytest.FixtureRequest) -> Iterator[list[dict[str, Any]]]:
    """Rows of a module's table, written at its end: those of test_simulator.py as simulator.json."""
    kept: list[dict[str, Any]] = []
    yield kept
    folder: Path = request.config.getoption("--into")
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n ".join(json.dumps(row) for row in kept)
    (folder / f"{request.path.stem.removeprefix('test_')}.json").write_text(f"[{lines}]\n")
