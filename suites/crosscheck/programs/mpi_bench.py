"""External MPI benchmarks under mpirun with the options of our launcher. Option `tool`: mpi4py_pingpong, osu_latency or
osu_bw.

Sizes are the powers of two from `sizes[0]` to `sizes[-1]`; `warmup` and `iterations` count round trips per size
(windows for osu_bw). Events, as the tool prints them: `one_way` in s, or `bandwidth` in GB/s for osu_bw; `nbytes` the
message.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from suite_programs import tools

from scaleproof.core.context import RankContext
from scaleproof.core.launch_spec import read_launch_spec
from scaleproof.core.recorder import now
from scaleproof.launch.launchers.launcher_contract import scratch
from scaleproof.launch.launchers.mpirun import Mpirun, options
from scaleproof.programs.common import mark

TIMEOUT_S = 100.0
OSU = (
    "build the OSU micro-benchmarks (mvapich.cse.ohio-state.edu/benchmarks) against the mpirun of this environment "
    "and add the folder of osu_latency and osu_bw to PATH (docs/crosscheck.md)"
)
MICRO, MEGA, GIGA = 1e-6, 1e6, 1e9


def obstacle(case: Any) -> tuple[str, str] | None:
    """See harness/scaleproof/programs/own.py. mpi4py's benchmark comes with mpi4py."""
    tool = str(case.options.get("tool"))
    return tools.obstacle(tool, OSU) if tool.startswith("osu") else None


def run(context: RankContext) -> None:
    """Runs the tool on two new processes and records its output."""
    case, launch_spec = context.case, read_launch_spec(context.folder)
    launcher = Mpirun()
    tool = str(case.options["tool"])
    command = [
        str(Path(sys.executable).parent / "mpirun"),
        *options(2, scratch(launch_spec.launch)),
        *_command(tool, case),
    ]
    context.at(0, tool)
    mark(context, "start", 0)
    printed = tools.run_tool(command, TIMEOUT_S, launcher.environment(context.folder, launch_spec))
    count = 0
    for nbytes, value in rows(tool, printed):
        moment = now()
        context.recorder.add("bandwidth" if tool == "osu_bw" else "one_way", 0, moment, moment, nbytes, value)
        count += 1
    mark(context, "end", 0)
    if not count:
        raise tools.ToolFailed(f"{tool} printed no row: {printed.strip()[-tools.OUTPUT_CHARACTERS :]}")
    context.facts["tool"] = {"command": " ".join(_command(tool, case)), "rows": count}


def _command(tool: str, case: Any) -> list[str]:
    first, last, loops, skip = str(case.sizes[0]), str(case.sizes[-1]), str(case.iterations), str(case.warmup)
    if tool.startswith("osu"):
        window = ["-W", str(case.options["window"])] if tool == "osu_bw" else []
        return [tool, "-m", f"{first}:{last}", "-i", loops, "-x", skip, *window]
    # The same number of loops at every size, as in our program.
    same = [flag for kind in ("large", "huge") for flag in (f"--loop-{kind}", loops, f"--skip-{kind}", skip)]
    return [sys.executable, "-m", "mpi4py.bench", "pingpong", "-m", first, "-n", last, "-l", loops, "-s", skip, *same]


def rows(tool: str, printed: str) -> Iterator[tuple[int, float]]:
    """Message size in bytes, and one-way time in s or bandwidth in GB/s, of every line except comments."""
    for line in printed.splitlines():
        fields = line.replace("|", " ").split()
        if len(fields) < 2 or not fields[0].isdigit():
            continue
        if tool == "osu_latency":
            yield int(fields[0]), float(fields[1]) * MICRO
        elif tool == "osu_bw":
            yield int(fields[0]), float(fields[1]) * MEGA / GIGA
        else:  # size, MB/s | mean time ± deviation, samples
            yield int(fields[0]), float(fields[2])
