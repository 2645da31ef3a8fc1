"""What Slurm reports about the job of this process. Only the job's number comes from the environment, since a program
in between may have removed all other variables."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime

from scaleproof.core.node_schema import Job
from scaleproof.launch.nodes.host_list import Host
from scaleproof.spec.errors import SpecError

KEPT = ("SLURM_CONF", "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JWT", "SLURM_CLUSTER_NAME", "SLURM_CLUSTERS")
"""Slurm's variables that srun may read; those of an outer step (tasks, binding, memory) hold for that step only."""
RUN_S = 30.0
_FIELD = re.compile(r"(\S+?)=(\S*)")
_UNREACHED = re.compile(r"failed on node ([^\s:]+):")
_PART = re.compile(r" Nodes=(\S+) CPU_IDs=(\S+)")


def job(variables: Mapping[str, str]) -> str | None:
    """The output of `scontrol show job` for the job of this process, one line; None outside of a job."""
    number = variables.get("SLURM_JOB_ID") or variables.get("SLURM_JOBID")
    if not number or shutil.which("scontrol") is None:
        return None
    return _run("scontrol", "show", "job", "-d", "-o", number).splitlines()[0]


def job_of(line: str) -> Job:
    """For the record."""
    fields = _fields(line)
    return Job(
        id=fields.get("JobId", ""), partition=fields.get("Partition", ""), restarts=int(fields.get("Restarts") or 0)
    )


def hosts_of(line: str) -> tuple[Host, ...]:
    """The job's nodes in Slurm's order. A node's slots: the larger of the job's tasks per node, where it says how many,
    and its processors on the node."""
    fields = _fields(line)
    names = names_of(fields.get("NodeList", ""))
    if not names:
        raise SpecError(f"Slurm job {fields.get('JobId')} has no nodes: {fields.get('JobState', 'state unknown')}")
    cores = {name: count(cpus) for part, cpus in _PART.findall(line) for name in names_of(part)}
    tasks = -(-int(number) // len(names)) if (number := fields.get("NumTasks", "")).isdigit() else 1
    switches = switches_of(_run("scontrol", "show", "topology", fail=False))
    return tuple(Host(name, max(tasks, cores.get(name, 1)), switches.get(name, "")) for name in names)


def cluster(variables: Mapping[str, str]) -> str:
    """The name of the cluster."""
    if name := variables.get("SLURM_CLUSTER_NAME"):
        return name
    match = re.search(r"^ClusterName\s*=\s*(\S+)", _run("scontrol", "show", "config"), re.M)
    return match[1] if match else "slurm"


def names_of(nodes: str) -> list[str]:
    """`n[1-3]` as n1, n2, n3."""
    if not nodes or nodes == "(null)":
        return []
    return _run("scontrol", "show", "hostnames", nodes).split() if set("[,") & set(nodes) else [nodes]


def switches_of(topology: str) -> dict[str, str]:
    """Node to the switches above it, from the top, as `spine.leaf`; empty without a topology. `topology`: what
    `scontrol show topology` prints."""
    below: dict[str, set[str]] = {}
    for line in topology.splitlines():
        fields = _fields(line)
        if "SwitchName" in fields:
            below[fields["SwitchName"]] = set(names_of(fields.get("Nodes", "")))
    nodes = set().union(*below.values()) if below else set()
    return {
        node: ".".join(
            sorted((name for name in below if node in below[name]), key=lambda name: (-len(below[name]), name))
        )
        for node in nodes
    }


def down(names: Sequence[str]) -> list[str]:
    """Which of these nodes Slurm reports as down or not responding."""
    lines = _run("scontrol", "show", "node", "-o", ",".join(names), fail=False).splitlines()
    states = {fields["NodeName"]: fields.get("State", "") for line in lines if "NodeName" in (fields := _fields(line))}
    return [
        name for name in names if any(word in states.get(name, "") for word in ("DOWN", "NOT_RESPONDING", "FAIL", "*"))
    ]


def unreached(output: str) -> list[str]:
    """Nodes on which srun could not start its step, from its output. Slurm itself may notice that minutes later
    (SlurmdTimeout)."""
    return list(dict.fromkeys(_UNREACHED.findall(output)))


def ending_state(number: str) -> str:
    """The state of a job that Slurm is ending, empty while it runs. Slurm checks time limits only every half minute and
    reports RUNNING until then; a job past its end time counts as TIMEOUT, since Slurm starts no more steps of it."""
    fields = _fields(_run("scontrol", "show", "job", "-o", number, fail=False))
    state, end = fields.get("JobState", "RUNNING"), fields.get("EndTime", "Unknown")
    if state != "RUNNING":
        return state
    return "TIMEOUT" if end[:1].isdigit() and datetime.fromisoformat(end) <= datetime.now() else ""


def count(cpus: str) -> int:
    """Processors in `0-3,8`."""
    ends = [part.split("-") for part in cpus.split(",")]
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def scrubbed(variables: Mapping[str, str]) -> dict[str, str]:
    """An environment for srun, without what an outer step left in it."""
    return {
        name: value
        for name, value in variables.items()
        if name in KEPT or not name.startswith(("SLURM", "SRUN_", "PMI", "SBATCH_"))
    }


def _fields(line: str) -> dict[str, str]:
    return dict(_FIELD.findall(line))


def _run(*command: str, fail: bool = True) -> str:
    try:
        completed = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=RUN_S, env=scrubbed(os.environ)
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        if fail:
            raise SpecError(f"`{' '.join(command)}` gave no answer: {error}") from None
        return ""
    if completed.returncode and fail:
        raise SpecError(
            f"`{' '.join(command)}`: {(completed.stderr.strip() or str(completed.returncode)).splitlines()[-1]}"
        )
    return "" if completed.returncode else completed.stdout
