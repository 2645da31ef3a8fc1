"""The machine around a launch, and the environment variables of its processes."""

from __future__ import annotations

import functools
import platform
import re
from typing import Any

from scaleproof.record.host import cores, cpu_model, host, memory_mib
from scaleproof.record.machine_load import read_machine_load

__all__ = ["PADDING", "cores", "cpu_model", "environment", "memory_mib", "read_machine_load", "size_bytes"]

PADDING = "SCALEPROOF_PADDING"
"""A variable of random length. The size of the environment shifts the stack, which changes the speed of programs
(Mytkowicz et al., ASPLOS 2009)."""
_VARIABLES = re.compile(
    r"^(OMP|MKL|OPENBLAS|KMP|GOMP|NUMEXPR|TF|GLOO|NCCL|UCX|OMPI|PMIX|PRTE|HOROVOD|GRPC|TORCH|CUDA|PYTHON|MALLOC|LD_"
    r"|KERAS|XLA|OPAL|SCALEPROOF|DNNL|ONEDNN|ATEN"
    r"|GLIBC|BLIS|VECLIB|FI_|PSM|RDMAV|IBV|SLURM_CPU|SLURM_NTASKS)"
    r"|^(http|https|all|no)_proxy$"
)
_PRIVATE = re.compile(r"TOKEN|SECRET|PASSWORD|KEY|_FILE|PYTHONPATH|FILE_PATH|PADDING", re.IGNORECASE)
"""Secrets and private paths are left out: they explain no result, and records are published. Only the length of the
padding matters."""


def environment(variables: dict[str, str]) -> dict[str, Any]:
    """Facts that do not change during a launch. `variables`: environment of its processes."""
    return {
        **host(),
        "platform": _platform(),
        "variables": {
            name: value
            for name, value in sorted(variables.items())
            if _VARIABLES.search(name) and not _PRIVATE.search(name)
        },
        "variables_bytes": size_bytes(variables),
        "padding_bytes": len(variables.get(PADDING, "")),
        "hash_seed": variables.get("PYTHONHASHSEED"),
    }


@functools.cache
def _platform() -> str:
    """Cached: it reads the C library, which takes ten milliseconds."""
    return platform.platform()


def size_bytes(variables: dict[str, str]) -> int:
    """Bytes that an environment takes on the stack: NAME=VALUE and a zero byte per variable."""
    return sum(
        len(name.encode()) + len(value.encode(errors="surrogateescape")) + 2 for name, value in variables.items()
    )
