"""What is true of one rank's process at its end: threads, cores, memory, processor time, the libraries that it loaded."""

from __future__ import annotations

import importlib.metadata
import os
import resource
import sys
from pathlib import Path
from typing import Any

_PACKAGES = {
    "numpy": "numpy", "torch": "torch", "tensorflow": "tensorflow-cpu", "horovod": "horovod", "mpi4py": "mpi4py", "grpc": "grpcio", "numba": "numba",
    "sklearn": "scikit-learn", "keras": "keras",
}  # fmt: skip
"""Imported module to the distribution whose version counts."""


def rank_facts() -> dict[str, Any]:
    """Plain data for the record; memory in MiB, times in s."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "affinity": sorted(os.sched_getaffinity(0)),
        "threads": _threads(),
        "framework_threads": _framework_threads(),
        "peak_memory_mib": round(usage.ru_maxrss / 1024, 1),
        "user_s": round(usage.ru_utime, 3),
        "system_s": round(usage.ru_stime, 3),
        "involuntary_switches": usage.ru_nivcsw,
        "hash_seed": os.environ.get("PYTHONHASHSEED"),
        "packages": _packages(),
        "libraries": loaded_libraries(),
    }


def loaded_libraries() -> list[str]:
    """File names of the shared libraries mapped into this process, Python's own extension modules left out."""
    paths = {line.split(maxsplit=5)[5].rstrip("\n") for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
    return sorted({Path(path).name for path in paths if ".cpython-" not in path and ".abi3." not in path and path.startswith("/")})


def _threads() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads:"))


def _framework_threads() -> int | None:
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads()) if torch is not None else None


def _packages() -> dict[str, str]:
    found = {}
    for module, distribution in _PACKAGES.items():
        if module not in sys.modules:
            continue
        try:
            found[module] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            found[module] = str(getattr(sys.modules[module], "__version__", "unknown"))
    return found
