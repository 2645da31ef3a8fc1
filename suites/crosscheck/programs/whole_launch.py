"""A launch inside this one, run by our supervisor while GNU time or hyperfine measures the launcher's processes from
outside.

Options: `tool` (gnu_time or hyperfine), `calls` of the inner launch's all-reduce over shared memory. Two inner
launches: one with a single call (step 0) and one with all calls (step 1). Events, values in s: `tool_wall` and
`tool_cpu` from the tool, `record_wall` and `record_cpu` from the inner run.json.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from suite_programs import tools

from scaleproof.core.context import RankContext
from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.record_schema import Record
from scaleproof.core.recorder import now
from scaleproof.launch.launchers.launcher_contract import Launcher
from scaleproof.launch.launchers.local import Local
from scaleproof.launch.supervisor import run_plan
from scaleproof.programs.common import mark
from scaleproof.record.store import Store
from scaleproof.spec import registry
from scaleproof.spec.case import CollectiveCase
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.plugins import LauncherPlugin

PRELOAD = ("scaleproof.launch.supervisor", "scaleproof.transports.shm.shm", "scaleproof.programs.collective")
COMMANDS = {"gnu_time": "time", "hyperfine": "hyperfine"}
DEADLINE_S = 60.0
NBYTES = 1 << 20
SHELL_LESS = ["--shell=none", "--runs", "1", "--style", "none", "--export-json"]


def obstacle(case: Any) -> tuple[str, str] | None:
    """See harness/scaleproof/programs/own.py."""
    command = COMMANDS.get(str(case.options.get("tool")))
    return tools.obstacle(command, tools.debian(command)) if command else None


def run(context: RankContext) -> None:
    """Runs two inner launches."""
    options = context.case.options
    mark(context, "start", 0)
    for step, calls in enumerate((1, int(options["calls"]))):
        context.at(step, "inner launch")
        _record(context, step, *_measured(context, str(options["tool"]), calls, step))
    mark(context, "end", 1)


class Measured(Launcher):
    """The local launcher, run by a tool. It replaces the launcher `local` in this process only; its ranks are not
    affected."""

    def __init__(self, tool: str, output: Path) -> None:
        self.tool, self.output, self.local = tool, output, Local()

    def __call__(self) -> Launcher:
        """The registry calls the object that it loads."""
        return self

    def command(self, folder: Path, launch_spec: LaunchSpec) -> list[str]:
        """The tool, which ends with this process, running the ranks' parent, which ends with the tool."""
        inner = self.local.command(folder, launch_spec)
        inner = inner[: inner.index("--creator")]
        if self.tool == "gnu_time":
            return tools.tied(["time", "--format", "%e %U %S", "--output", str(self.output), *inner])
        return tools.tied(["hyperfine", *SHELL_LESS, str(self.output), shlex.join(inner)])

    def environment(self, folder: Path, launch_spec: LaunchSpec) -> dict[str, str]:
        """Nothing of its own."""
        return self.local.environment(folder, launch_spec)


MEASURED: dict[str, Measured] = {}
"""The launcher of the moment, where the registry finds it."""


def launcher() -> Launcher:
    """What `local` stands for in this process."""
    return MEASURED["local"]


def _measured(context: RankContext, tool: str, calls: int, step: int) -> tuple[Record, Path]:
    output = context.folder / f"{tool}.{step}"
    MEASURED["local"] = Measured(tool, output)
    watched = LauncherPlugin(name="local", summary="measured from outside", implementation=launcher)
    registry.replace(watched)
    case = CollectiveCase(
        suite="crosscheck",
        experiment="inner",
        arm=tool,
        ranks=2,
        transport="shm",
        collective="ring",
        sizes=(NBYTES,),
        iterations=calls,
        warmup=0,
    )
    results = context.folder / "inner"
    outcome = run_plan([PlannedLaunch(case, step, context.seed, 0)], results, size="ci", deadline_s=DEADLINE_S)
    record, _ = Store(results).load(outcome.launches[0])
    if record.failure is not None:
        raise tools.ToolFailed(f"the inner launch failed: {record.failure.message}")
    return record, output


def _record(context: RankContext, step: int, record: Record, output: Path) -> None:
    wall, cpu = _tool_times(output)
    record_cpu = sum(rank.facts["user_s"] + rank.facts["system_s"] for rank in record.ranks)
    moment = now()
    for event, value in {
        "tool_wall": wall,
        "tool_cpu": cpu,
        "record_wall": record.wall_s,
        "record_cpu": record_cpu,
    }.items():
        context.recorder.add(event, step, moment, moment, value=value)


def _tool_times(output: Path) -> tuple[float, float]:
    """Wall time, and user and system time together, in s."""
    if output.name.startswith("gnu_time"):
        wall, user, system = map(float, output.read_text().split())
        return wall, user + system
    result = json.loads(output.read_text())["results"][0]
    return float(result["mean"]), float(result["user"]) + float(result["system"])
