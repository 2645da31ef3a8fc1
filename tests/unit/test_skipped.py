"""The summary lists skipped tests with their reasons; in continuous integration a skipped test is a failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = """
import pytest
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("transport", ["nccl", "tcp"])
def test_it(number, transport):
    pytest.skip(f"{transport} is not there")
def test_other(): pass
"""


def run(folder: Path) -> tuple[int, list[str]]:
    """Exit code and output of pytest in a temporary project with this project's conftest."""
    path = folder / "tests" / "integration" / "test_transports.py"
    path.parent.mkdir(parents=True)
    path.write_text(TEST)
    argv = [sys.executable, "-m", "pytest", "-p", "tests.skipped", f"--rootdir={folder}", "tests"]
    ended = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    return ended.returncode, ended.stdout.splitlines()


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("SCALEPROOF_CI", raising=False)


def test_the_summary_names_skipped_tests_and_their_reason(tmp_path: Path) -> None:
    code, lines = run(tmp_path)
    assert code == 0
    name = "    tests/integration/test_transports.py::test_it (2)"
    start = next(number for number, line in enumerate(lines) if "skipped, and why" in line)
    assert lines[start + 1 : start + 5] == ["nccl is not there", name, "tcp is not there", name]
    assert "1 passed, 4 skipped" in lines[-1]


def test_in_continuous_integration_a_skipped_test_has_failed_unless_it_cannot_run_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEPROOF_CI", "1")
    code, lines = run(tmp_path)
    assert code == 1
    assert "2 failed, 1 passed, 2 skipped" in lines[-1]
    assert any("tcp is not there" in line for line in lines)
    assert any("must run" in line for line in lines)
