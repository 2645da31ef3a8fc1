"""A supervisor on the first node of a cluster of namespaces; it reaches the others as hosts of a list: `hosts.py
RESULTS CASES FAULT`.

`on_hosts` runs it. FAULT: empty, `kill` (every process of the last node at once), `cut` (the last node's cable),
`supervisor` (killed and started again)."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import write_json
from scaleproof.core.board import Board
from scaleproof.core.record_schema import Record
from scaleproof.fabric.guests.guest_plan import LINKS
from scaleproof.launch.nodes.allocated_nodes import discover_nodes
from scaleproof.launch.nodes.requested_nodes import NodeOptions, requested_allocation
from scaleproof.launch.plan_outcome import PlanOutcome
from scaleproof.launch.preflight.sniff_test import FOLDER as SNIFFS
from scaleproof.launch.start.on_namespaces import run_in_namespaces
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec.cluster import node_name, star
from tests.integration.launches import launches
from tests.short_form import case_from
from tests.waiting import wait_until

REACH = f"{sys.executable} -m scaleproof.fabric.netns.node_shell"
GONE_S = 25.0
"""From a fault to the end of the last process on any node: 10 s without a word, and some to end."""


def on_hosts(
    folder: Path, cases: Sequence[dict[str, Any]], nodes: int, fault: str = "", slots: int = 2, **variables: str
) -> dict[str, Any]:
    """What the supervisor told: `launches` of its runs, one list each, and `left`: what was left on nodes when it had
    ended. Nodes that an earlier run sniffed are not sniffed again."""
    shutil.copytree(_sniffed(), folder / "results" / SNIFFS, dirs_exist_ok=True)
    names = ",".join(f"{node_name(node)}:{slots}" for node in range(nodes))
    own = {
        "SCALEPROOF_HOSTS": names,
        "SCALEPROOF_SSH": REACH,
        "PYTHONPATH": str(Path(__file__).parents[2] / "harness"),
        **variables,
    }
    command = [
        "env",
        *(f"{name}={value}" for name, value in own.items()),
        sys.executable,
        "-m",
        "tests.integration.hosts",
    ]
    first = [*command, str(folder / "results"), json.dumps(list(cases)), fault]
    ran = run_in_namespaces(
        [first, *[[] for _ in range(nodes - 1)]], star("hosts", nodes, 1000.0, 0.0), timeout_s=150.0
    )
    shutil.copytree(folder / "results" / SNIFFS, _sniffed(), dirs_exist_ok=True)
    lines = [line for line in ran.output[0].splitlines() if line.startswith("{")]
    assert lines, f"{ran.code}: {ran.output[0]}\n{ran.log}"
    summary: dict[str, Any] = json.loads(lines[-1])
    return summary | {"said": ran.output[0]}


@cache
def _sniffed() -> Path:
    """A folder of this process with the figures of all sniff tests so far."""
    folder = Path(tempfile.mkdtemp(prefix="scaleproof-sniffed-"))
    atexit.register(shutil.rmtree, folder)
    return folder


def records(folder: Path, summary: dict[str, Any]) -> list[Record]:
    """Of all launches, in order."""
    store = Store(folder / "results")
    return [store.load(launch)[0] for run in summary["launches"] for launch in run]


def small(arm: str, **fields: Any) -> dict[str, Any]:
    """Fields of a case: an all-reduce of 64 KiB over tcp between ranks on `host`, which names no node."""
    base = {
        "program": "collective",
        "suite": "tests",
        "experiment": "hosts",
        "ranks": 3,
        "transport": "tcp",
        "collective": "ring",
    }
    return {**base, "sizes": [65536], "iterations": 4, "warmup": 1, "arm": arm, **fields}


def _run(results: Path, cases: list[dict[str, Any]]) -> PlanOutcome:
    allocation = requested_allocation(NodeOptions(), os.environ)
    assert allocation is not None
    return run_plan(
        launches([case_from(fields) for fields in cases]),
        results,
        size="ci",
        deadline_s=60.0,
        allocated=discover_nodes(allocation, results.absolute()),
    )


def _launch(results: Path) -> Path:
    """The folder of the launch whose ranks have begun to measure."""

    def measuring() -> list[Path]:
        return [path.parent for path in (results / "staging").glob("*/launch.json") if _measures(path)]

    return wait_until(measuring, "the ranks of a launch have begun to measure", every_s=0.05)[0]


def _measures(file: Path) -> bool:
    """Whether all ranks of the launch with this launch spec have made more than 20 calls."""
    launch_spec = json.loads(file.read_text())
    if launch_spec["size"] != "ci":
        return False
    board = Board(file.parent / "board", int(launch_spec["case"]["ranks"]))
    return all(board.read(rank).calls > 20 for rank in range(board.world_size))


def _do(fault: str, results: Path, nodes: int) -> None:
    """In a process of its own, beside the supervisor."""
    _launch(results)
    if fault == "kill":
        subprocess.run([*REACH.split(), node_name(nodes - 1), "kill -KILL -1"], check=False, timeout=20)
    elif fault == "cut":
        write_json(Path(os.environ["SCALEPROOF_SHARED"]) / LINKS, {str(nodes - 1): False})


def _leftovers_of(launches: Sequence[str], nodes: int, fault: str) -> list[str]:
    """Processes, memory files and folders of launches on all nodes, waited for; but for the memory of a node whose
    processes were all killed: the next discovery sweeps it."""
    until, swept_later = time.monotonic() + GONE_S, f"{node_name(nodes - 1)}: /dev/shm/" if fault == "kill" else "none"
    while (
        remaining := [item for item in _traces_of(launches, nodes) if not item.startswith(swept_later)]
    ) and time.monotonic() < until:
        time.sleep(0.2)
    return remaining


def _traces_of(launches: Sequence[str], nodes: int) -> Iterator[str]:
    for node in range(nodes):
        for launch in launches:
            line = (
                f"grep -slz SCALEPROOF_LAUNCH={launch} /proc/[0-9]*/environ; ls -d /dev/shm/*{launch}* "
                "2>/dev/null; true"
            )
            shell = ["/bin/sh", "-c", line] if node == 0 else [*REACH.split(), node_name(node), line]
            lines = subprocess.run(shell, capture_output=True, text=True, check=False, timeout=20).stdout.split()
            yield from (f"{node_name(node)}: {line_of_node}" for line_of_node in lines)


def main() -> None:
    results, cases, fault = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
    nodes = os.environ["SCALEPROOF_HOSTS"].count(",") + 1
    runs: list[list[str]] = []
    killed: list[str] = []
    if fault == "supervisor":
        first = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.hosts", str(results), json.dumps(cases), "alone"]
        )
        killed.append(_launch(results).name)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        leftovers = _leftovers_of(killed, nodes, fault)
        cases = [{**fields, "iterations": 4} for fields in cases]
    elif fault in ("kill", "cut"):
        beside = os.fork()
        if beside == 0:
            _do(fault, results, nodes)
            os._exit(0)
    outcome = _run(results, cases)
    runs.append(outcome.launches)
    if fault != "supervisor":
        leftovers = _leftovers_of([launch for run in runs for launch in run], nodes, fault)
    print(json.dumps({"launches": runs, "left": leftovers, "killed": killed, "stopped": outcome.stopped}), flush=True)


if __name__ == "__main__":
    main()
