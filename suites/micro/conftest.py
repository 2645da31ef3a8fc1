"""Options of the suite's benchmarks, one run for all of them, and their JSON into the folder of records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scaleproof.spec.suite import load_suite
from scaleproof.spec.suite_form import SIZES
from suites.micro.bench.launches import FOLDER, Launches, points


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which launches."""
    group = parser.getgroup("micro")
    group.addoption("--size", choices=SIZES, default="smoke", help="size of suite micro (default: smoke)")
    group.addoption("--results", type=Path, default=Path("results"), help="folder of records (default: results)")


def pytest_configure(config: pytest.Config) -> None:
    """pytest-benchmark composes its JSON only when told to write it: without a file of the user's, to nowhere."""
    if getattr(config.option, "benchmark_json", None) is None:
        config.option.benchmark_json = os.devnull


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A benchmark for each message size."""
    if "point" in metafunc.fixturenames:
        function = metafunc.function
        test_points = points(
            load_suite(FOLDER), metafunc.config.getoption("--size"), function.program, function.transport
        )
        metafunc.parametrize("point", test_points, ids=str)


@pytest.fixture(scope="session")
def launches(request: pytest.FixtureRequest) -> Iterator[Launches]:
    """Those of every benchmark that was chosen."""
    chosen = [
        item.callspec.params["point"]
        for item in request.session.items
        if "point" in getattr(getattr(item, "callspec", None), "params", {})
    ]
    yield Launches(request.config.getoption("--results").resolve(), request.config.getoption("--size"), chosen)


def pytest_benchmark_update_json(config: pytest.Config, benchmarks: Any, output_json: dict[str, Any]) -> None:
    """A file for each program and transport: what pytest-benchmark composed, of these benchmarks alone."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in output_json["benchmarks"]:
        info = entry["extra_info"]
        if info.get("suite") == "micro":
            groups.setdefault((info["program"], info["transport"]), []).append(entry)
    folder = config.getoption("--results") / "benchmarks"
    for (program, transport), entries in groups.items():
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"micro.{program}.{transport}.{config.getoption('--size')}.json"
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        draft.write_text(json.dumps({**output_json, "benchmarks": entries}, indent=1, default=str) + "\n")
        draft.rename(target)
