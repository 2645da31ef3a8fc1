"""Plugins of every kind in a user's own package (tests/example_package), installed beside the harness: found, run,
shown, judged and predicted like those of the harness; and their records where the package is not installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scaleproof.paths import IMPORT_ROOT

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tests" / "example_package"
SUITE = PACKAGE / "suites" / "example"
NAMES = {
    "transport unix_sockets",
    "collective through_root",
    "strategy accumulate",
    "program barriers",
    "fabric loopback",
    "launcher low_priority",
    "workload single_layer",
    "dataset ten_points",
    "framework torch_again",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as its build makes it, entry points included. Nothing is downloaded."""
    folder = tmp_path_factory.mktemp("example_package")
    source = shutil.copytree(PACKAGE, folder / "source")  # the build writes beside its sources
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder / "installed"), str(source)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder / "installed"


@pytest.fixture(scope="module")
def results(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of the package's suite."""
    folder = tmp_path_factory.mktemp("results")
    ran = scaleproof("run", str(SUITE), "--size", "ci", "--results", str(folder), also=installed)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def scaleproof(*arguments: str, also: Path | None) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, with or without the package on Python's path."""
    paths = [str(IMPORT_ROOT), str(also)] if also else [str(IMPORT_ROOT)]
    return subprocess.run(
        [sys.executable, "-m", "scaleproof", *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def records(results: Path) -> dict[str, dict[str, Any]]:
    """A record of each arm."""
    runs = [json.loads(path.read_text()) for path in results.glob("runs/*/*/run.json")]
    return {run["case"]["arm"]: run for run in runs}


def test_they_are_listed_beside_those_of_the_harness(installed: Path) -> None:
    listed = json.loads(scaleproof("doctor", "--json", also=installed).stdout)["names"]
    assert {f"{row['kind']} {row['name']}" for row in listed if row["available"]} >= NAMES


def test_every_launch_ends_well_and_exchanges_as_often_as_the_option_says(results: Path) -> None:
    runs = records(results)
    assert set(runs) == {"every_step", "every_fourth", "predicted", "all_of_them", "barriers"}
    assert {run["status"] for run in runs.values()} == {"ok"}
    sent = {arm: [rank["asked_bytes"] for rank in run["network"]] for arm, run in runs.items()}
    assert sent["every_step"] == [4 * nbytes for nbytes in sent["every_fourth"]]


def test_they_are_shown_collected_and_judged(installed: Path, results: Path) -> None:
    options = ["--size", "ci", "--results", str(results)]
    process = scaleproof(
        "show", str(records(results)["every_fourth"]["launch"]), "--results", str(results), also=installed
    )
    assert "strategy accumulate, strategy.every 4" in process.stdout and "topology dedicated-master" in process.stdout
    collected = scaleproof("collect", str(SUITE), "accumulation", *options, also=installed)
    assert collected.returncode == 0, collected.stderr
    judged = scaleproof("judge", str(SUITE), *options, also=installed)
    assert judged.returncode == 0 and "example.fewer_exchanges_are_no_slower" in judged.stdout, judged.stderr


@pytest.mark.parametrize(
    ("arm", "line"),
    [
        ("{name: accumulate, every: 0}", "every_fourth.strategy.every: 0 is not allowed; it must be more than 0"),
        ("{name: accumulate, evry: 4}", "strategy.evry: unknown key; did you mean 'strategy.every'?"),
        ("{name: acumulate, every: 4}", "strategy.name: unknown strategy 'acumulate'; did you mean 'accumulate'?"),
        ("{name: sync, every: 4}", "strategy.every: strategy 'sync' has no option 'every'; 'accumulate' has it"),
    ],
)
def test_a_wrong_option_is_one_line(installed: Path, tmp_path: Path, arm: str, line: str) -> None:
    folder = shutil.copytree(SUITE, tmp_path / "example")
    path = folder / "suite.yaml"
    path.write_text(path.read_text().replace("{name: accumulate, every: 4}", arm))
    ended = scaleproof("run", str(folder), "--size", "ci", "--results", str(tmp_path / "results"), also=installed)
    assert ended.returncode == 2 and ended.stderr.strip().endswith(line) and len(ended.stderr.splitlines()) == 1


def test_without_the_package_its_records_are_still_read_and_its_suite_says_what_is_missing(results: Path) -> None:
    options = ["--results", str(results)]
    process = scaleproof("show", records(results)["every_fourth"]["launch"], *options, also=None)
    assert process.returncode == 0 and "strategy accumulate, strategy.every 4" in process.stdout
    for name in ("unix_sockets", "through_root", "accumulate"):
        assert f"plugin {name!r}" in process.stderr and "is not installed here" in process.stderr
    listed = scaleproof("results", "list", *options, also=None)
    assert "8 launches: 8 ok" in listed.stdout
    ended = scaleproof("run", str(SUITE), "--size", "ci", *options, also=None)
    assert ended.returncode == 2 and len(ended.stderr.splitlines()) == 1
    assert "unknown strategy 'accumulate'" in ended.stderr


def test_an_edit_to_one_plugin_runs_only_the_launches_that_use_it_again(installed: Path, results: Path) -> None:
    before = records(results)
    assert "example_plugins.accumulate" in before["every_step"]["code"]["files"]
    assert "example_plugins.accumulate" not in before["all_of_them"]["code"]["files"]
    strategy = installed / "example_plugins" / "accumulate.py"
    text = strategy.read_text()
    try:
        strategy.write_text(text + "\n# edited\n")
        ran = scaleproof("run", str(SUITE), "--size", "ci", "--results", str(results), also=installed)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        experiments = {line.split()[1]: line for line in ran.stdout.splitlines() if line.startswith("example ")}
        assert "0 finished before, 6 done" in experiments["accumulation"]
        for name in ("other_kinds", "barriers"):
            assert "1 finished before, 0 done" in experiments[name]
    finally:
        strategy.write_text(text)


_CONFORMS = """
from tests.integration import test_conformance as conformance
results, problems = conformance.everything("unix_sockets", 2)
failed = [result["name"] + ": " + result["detail"] for result in results if not result["passed"]]
assert {result["collective"] for result in results} >= {"through_root", "ring", "messages", "leaving"}
print(len(results), *failed, *problems, sep="\\n")
"""


def test_the_transport_and_the_collective_conform(installed: Path) -> None:
    """All operations, types and sizes with 2 ranks, and what is left afterwards."""
    paths = os.pathsep.join([str(IMPORT_ROOT), str(ROOT), str(installed)])
    ended = subprocess.run(
        [sys.executable, "-c", _CONFORMS],
        env=os.environ | {"PYTHONPATH": paths},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    number, *failed = ended.stdout.splitlines()
    assert int(number) > 500 and not failed, ended.stdout
