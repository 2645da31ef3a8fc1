"""The end of a launch's processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from scaleproof.core.launch_spec import ENVIRONMENT
from scaleproof.launch import teardown


def test_one_look_suffices_where_nothing_is_left_and_what_is_left_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = list[str]()

    def marked(variable: str) -> list[int]:
        looks.append(variable)
        return look(variable)

    look = teardown._marked
    monkeypatch.setattr(teardown, "_marked", marked)
    assert teardown.end_processes("no-such-launch", 1.0) == [] and len(looks) == 1
    launch = "launch-of-a-test"
    command = [sys.executable, "-c", "print(flush=True); import time; time.sleep(60)"]
    sleeping = subprocess.Popen(command, env={**os.environ, ENVIRONMENT: launch}, stdout=subprocess.PIPE)
    assert sleeping.stdout is not None and sleeping.stdout.readline()
    assert teardown.end_processes(launch, 5.0) == [sleeping.pid] and teardown.processes(launch) == []
    sleeping.stdout.close()
    sleeping.wait()
