"""Launches in a network namespace of their own: `in_namespace.py RESULTS SETUP CASES`. SETUP: lines for `ip`; CASES: a
JSON list of fields.

`namespaced` runs it; nobody else's traffic is there, and nothing of it stays behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from tests.integration.launches import launches, small_case

OTHER = [
    "link set lo up",
    "link add around0 type veth peer name around1",
    "link set around1 up",
    "address add 10.99.0.1/24 dev around0",
    "link set around0 up",
]
"""Loopback and an interface of another name: what two ranks of this namespace tell each other travels over loopback,
whichever address they bind."""


def unshare() -> list[str]:
    """The command before a command; skips the test where the kernel does not give a namespace."""
    for command in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        tools = shutil.which("unshare") and shutil.which("ip")
        if tools and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    pytest.skip("needs root (or user namespaces), unshare and ip")


def namespaced(results: Path, setup: list[str], cases: list[dict[str, Any]]) -> list[Record]:
    """Run the cases once each; their records in order."""
    command = [
        *unshare(),
        sys.executable,
        "-m",
        "tests.integration.in_namespace",
        str(results),
        json.dumps(setup),
        json.dumps(cases),
    ]
    process = subprocess.run(
        command,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=90,
        env=dict(os.environ),
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return [Store(results).load(launch)[0] for launch in json.loads(process.stdout)]


if __name__ == "__main__":
    for line in json.loads(sys.argv[2]):
        subprocess.run(["ip", *line.split()], check=True)
    plan = launches([small_case(**fields) for fields in json.loads(sys.argv[3])])
    print(json.dumps(run_plan(plan, Path(sys.argv[1]), size="ci", deadline_s=60).launches))
