"""The suite helios2021 at size ci: every experiment that needs no trace of the user's ends well and says what ran."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_size_ci_runs_and_records_what_held(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scaleproof", "run", "helios2021", "--size", "ci", "--results", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    records = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/*/run.json")]
    arms = {(record["case"]["experiment"], record["case"]["arm"]) for record in records}
    assert arms == {
        ("venus", "fifo"),
        ("venus", "qssf"),
        ("synthetic", "srtf"),
        ("marginals", "generated"),
        ("saving", "linear"),
    }
    assert {record["status"] for record in records} == {"ok"} and {record["evidence"] for record in records} == {
        "simulated"
    }
    checks = {check["name"]: check for record in records for check in record["checks"]}
    assert {"no_gpu_twice", "no_job_lost", "work_conserving", "enough_nodes", "source"} <= checks.keys()
    assert all(check["passed"] for record in records for check in record["checks"])
