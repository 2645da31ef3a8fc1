"""In a parallel run whole files run beside each other, and some run alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.phases import ALONE, LONGEST

ROOT = Path(__file__).parents[2]
TEST = """
import json, os, time, pytest
@pytest.mark.parametrize("number", range(4))
def test_it(number):
    begun = time.monotonic()
    time.sleep(0.05)  # long enough to be seen beside another
    with open(os.environ["RAN"], "a") as file:
        file.write(json.dumps([{file!r}, os.environ["PYTEST_XDIST_WORKER"], begun, time.monotonic()]) + chr(10))
"""

STUCK = """
from collections import deque
from itertools import repeat
def test_stuck():
    deque(repeat(0), maxlen=0)  # never leaves compiled code, where no signal is looked at
def test_next():
    pass
"""

UNIT, LAUNCHES, BROWSER, CLOCK = (
    "unit/test_unit.py",
    "integration/test_launch.py",
    "browser/test_report.py",
    "integration/test_clock.py",
)


@pytest.mark.parametrize("files", [[LAUNCHES], [CLOCK], [UNIT, CLOCK], [UNIT, LAUNCHES, BROWSER, CLOCK]], ids=len)
def test_whole_files_run_beside_each_other_then_some_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str]
) -> None:
    pytest.importorskip("xdist")
    for file in files:
        path = tmp_path / "tests" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEST.replace("{file!r}", repr(file)))
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    argv = [sys.executable, "-m", "pytest", "-p", "xdist.plugin", "-n", "2", "-p", "tests.phases", "tests"]
    argv += ["--import-mode=importlib", f"--rootdir={tmp_path}"]
    ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    ran = sorted((json.loads(line) for line in (tmp_path / "ran").read_text().splitlines()), key=lambda test: test[2])
    assert len(ran) == 4 * len(files)
    workers = {file: {worker for name, worker, _, _ in ran if name == file} for file in files}
    assert all(len(of_file) == 1 for of_file in workers.values())
    if BROWSER in files:
        assert workers[BROWSER] != workers[LAUNCHES]
    for alone in (test for test in ran if test[0] == CLOCK):
        assert [other for other in ran if other is not alone and other[2] < alone[3] and alone[2] < other[3]] == []
        assert not [other for other in ran if other[0] != CLOCK and other[2] > alone[2]]


def test_the_files_of_either_list_exist() -> None:
    assert [file for file in (*ALONE, *LONGEST) if not (ROOT / file).is_file()] == []


def test_compiled_code_that_does_not_return_ends_its_worker_alone(tmp_path: Path) -> None:
    (tmp_path / "test_stuck.py").write_text(STUCK)
    argv = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), f"--rootdir={tmp_path}", "-n", "1"]
    argv += ["-o", "timeout=1", "-o", "faulthandler_timeout=3", str(tmp_path)]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True) as run:
        try:
            shown, _ = run.communicate(timeout=100)
        finally:  # the worker would never end
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
    assert "crashed while running 'test_stuck.py::test_stuck'" in shown, shown
    assert "1 failed, 1 passed" in shown
