"""In a parallel run, tests that need the whole machine run alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = """
import json, os, time, pytest
@pytest.mark.parametrize("number", range(6))
def test_it(number):
    begun = time.monotonic()
    time.sleep(0.05)  # long enough to be seen beside another
    with open(os.environ["RAN"], "a") as file:
        file.write(json.dumps([{folder!r}, os.environ["PYTEST_XDIST_WORKER"], begun, time.monotonic()]) + chr(10))
"""


@pytest.mark.parametrize("folders", [["unit"], ["integration"], ["integration", "unit", "browser"]], ids=" ".join)
def test_tests_that_need_the_machine_run_after_the_others_and_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: list[str]
) -> None:
    pytest.importorskip("xdist")
    for folder in folders:
        path = tmp_path / "tests" / folder / f"test_{folder}.py"
        path.parent.mkdir(parents=True)
        path.write_text(TEST.replace("{folder!r}", repr(folder)))
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    argv = [sys.executable, "-m", "pytest", "-p", "xdist.plugin", "-n", "2", "-p", "tests.two_phases", "tests"]
    ended = subprocess.run([*argv, f"--rootdir={tmp_path}"], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    ran = sorted((json.loads(line) for line in (tmp_path / "ran").read_text().splitlines()), key=lambda each: each[2])
    assert len(ran) == 6 * len(folders)
    alone = [each for each in ran if each[0] != "unit"]
    assert len({worker for _, worker, _, _ in alone}) <= 1
    if "unit" in folders:
        assert len({worker for folder, worker, _, _ in ran if folder == "unit"}) == 2
    for each in alone:
        beside = [other for other in ran if other is not each and other[2] < each[3] and each[2] < other[3]]
        assert beside == []
