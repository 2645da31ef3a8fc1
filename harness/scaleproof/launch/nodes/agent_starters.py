"""The programs that start an agent on each node for the coordinator: one srun for all, or a remote shell for each."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from scaleproof.launch.nodes import slurm
from scaleproof.launch.nodes.coordinator_link import UNABLE, failed_agents
from scaleproof.launch.nodes.forwarded_variables import carried, for_starter
from scaleproof.launch.nodes.node_state import LaunchNodes, NodeState

ENDED_S = 1.0
"""Time after the end of such a program for the last messages of its agents."""


class AgentStarters:
    """The running programs. Each ends with its agents, and also when its connection to a node is lost."""

    def __init__(self, nodes: LaunchNodes) -> None:
        self.nodes = nodes
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ended_at: dict[int, float] = {}

    def start(self, plan: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        """Start all programs and write the header, one line of JSON, to their standard inputs. This process keeps the
        inputs open: agents end with it."""
        header = json.dumps({**plan["header"], **fields, "environment": carried(os.environ)}).encode() + b"\n"
        for index, (command, numbers) in enumerate(plan["starters"]):
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, env=for_starter(command[0], os.environ), start_new_session=True
            )
            self._processes.append(process)
            for number in numbers:
                self.nodes.states[number].starter = index
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # it has ended; `check` notices it
                process.stdin.write(header)
                process.stdin.flush()

    def check(self, now: float) -> None:
        """Report the nodes that still ran when the program that started their agents ended."""
        for index, process in enumerate(self._processes):
            if process.poll() is None or now - self._ended_at.setdefault(index, now) <= ENDED_S:
                continue
            running = [
                node for node in self.nodes.states if node.starter == index and node.exit_code is None and not node.over
            ]
            if not running:
                continue
            if process.returncode == UNABLE and all(node.link is None for node in running):
                self._unable(running)
            else:
                program = Path(process.args[0]).name if isinstance(process.args, list) else ""
                self._ended(running, f"{program} ended with code {process.returncode}")

    def end(self, until: float) -> None:
        """Wait for all programs until a time of the monotonic clock, then kill those that still run."""
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(max(until - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _unable(self, nodes: list[NodeState]) -> None:
        """Agents ran and could not join the launch; the launch's log has what they wrote to their standard error."""
        reasons = failed_agents(self._log())
        for node in nodes:
            reason = reasons.get(node.number) or "its agent could not join the launch; launcher.log says why"
            self.nodes.lose(node, "start_failed", reason)

    def _ended(self, nodes: list[NodeState], how: str) -> None:
        """Report nodes whose program ended. All of them answered discovery; a step of Slurm starts on all of its nodes
        or on none, and Slurm knows which nodes are down."""
        names = [node.name for node in nodes]
        down = set(names) if len(names) == 1 else {*slurm.down(names), *slurm.unreached(self._log())}
        for node in nodes:
            if node.link is None and not down:
                self.nodes.lose(node, "start_failed", f"no agent was started: {how}; launcher.log says why")
            elif node.link is not None:
                self.nodes.lose(node, "node_lost", how)
            elif node.name in down:
                self.nodes.lose(node, "node_lost", f"{how}, and no agent was started")
            else:
                node.over = True

    def _log(self) -> str:
        path = self.nodes.folder / "launcher.log"
        return path.read_text(errors="replace") if path.exists() else ""
