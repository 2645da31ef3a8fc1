"""Which variables of the supervisor's environment go to the nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from scaleproof.core.location import ADDRESS, CLOCK, NODE, PROC
from scaleproof.launch.nodes.slurm import scrubbed

STEP = ("SLURM", "SBATCH", "SRUN_", "PMI")
"""Beginnings of those of the step that started an agent; a library would take itself for a process of it."""
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
"""Beginnings of variables that every node has for itself."""
_ABOVE = (ADDRESS, NODE, CLOCK, PROC, "_")
"""Variables about the place of the supervisor itself."""
_SECRET = re.compile(r"(?:TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY)S?(?![A-Z])", re.IGNORECASE)


def carried(variables: Mapping[str, str]) -> dict[str, str]:
    """What goes to every node: not what a node has for itself, and no secrets."""
    return {
        name: value
        for name, value in variables.items()
        if not name.startswith((*STEP, *OWN)) and name not in _ABOVE and not _SECRET.search(name)
    }


def for_starter(program: str, variables: Mapping[str, str]) -> dict[str, str]:
    """What the program that starts agents has itself. srun hands all of it on to the nodes; a remote shell nothing, and
    it may need a secret to log in."""
    kept_by_srun = scrubbed(variables)
    if program != "srun":
        return kept_by_srun
    return {name: value for name, value in kept_by_srun.items() if not _SECRET.search(name)}


def kept(variables: Mapping[str, str]) -> dict[str, str]:
    """What a node has for itself."""
    return {name: value for name, value in variables.items() if name.startswith(OWN)}
