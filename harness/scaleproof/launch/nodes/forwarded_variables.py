"""Which variables of the supervisor's environment go to the nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from scaleproof.core.location import ADDRESS, CLOCK, NODE, PROC
from scaleproof.launch.nodes.slurm import scrubbed

STEP = ("SLURM", "SBATCH", "SRUN_", "PMI")
"""Prefixes of variables of the Slurm step that started an agent; with them a library would behave as a process of that
step."""
OWN = (
    "SSH_",
    "XDG_",
    "TMPDIR",
    "HOSTNAME",
    "PWD",
    "OLDPWD",
    "DISPLAY",
    "DBUS_",
    "SHLVL",
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
)
"""Prefixes of variables that every node has for itself."""
_OF_SUPERVISOR = (ADDRESS, NODE, CLOCK, PROC, "_")
"""Variables about the node of the supervisor itself."""
_SECRET = re.compile(r"(?:TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY)S?(?![A-Z])", re.IGNORECASE)


def carried(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that go to every node: none that a node has for itself, and no secrets."""
    return {
        name: value
        for name, value in variables.items()
        if not name.startswith((*STEP, *OWN)) and name not in _OF_SUPERVISOR and not _SECRET.search(name)
    }


def for_starter(program: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of the program that starts agents. srun passes all of it on to the nodes, a remote shell passes
    nothing on and may need a secret to log in."""
    without_step = scrubbed(variables)
    if program != "srun":
        return without_step
    return {name: value for name, value in without_step.items() if not _SECRET.search(name)}


def node_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that a node has for itself."""
    return {name: value for name, value in variables.items() if name.startswith(OWN)}
