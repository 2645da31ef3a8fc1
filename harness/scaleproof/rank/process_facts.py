"""Facts about a rank's process at its end: threads, cores, memory, processor time, loaded libraries, sockets, seeds."""

from __future__ import annotations

import functools
import importlib.metadata
import ipaddress
import os
import resource
import sys
from pathlib import Path
from typing import Any

from scaleproof.record.cgroups import limits
from scaleproof.record.environment import size_bytes
from scaleproof.record.host import cores, host
from scaleproof.record.libraries import loaded_libraries

_PACKAGES = {
    "numpy": "numpy",
    "torch": "torch",
    "tensorflow": "tensorflow-cpu",
    "horovod": "horovod",
    "mpi4py": "mpi4py",
    "grpc": "grpcio",
    "numba": "numba",
    "sklearn": "scikit-learn",
    "keras": "keras",
}
"""Imported module to the distribution whose version counts."""
_LISTEN = "0A"
_TCP_FILES = ("tcp", "tcp6")


def rank_facts() -> dict[str, Any]:
    """Plain data for the record; memory in MiB, times in s."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "affinity": sorted(os.sched_getaffinity(0)),
        "threads": _threads(),
        "framework_threads": _framework_threads(),
        "thread_pools": thread_pools(),
        "peak_memory_mib": round(usage.ru_maxrss / 1024, 1),
        "private_memory_mib": private_mib(),
        "user_s": round(usage.ru_utime, 3),
        "system_s": round(usage.ru_stime, 3),
        "involuntary_switches": usage.ru_nivcsw,
        "hash_seed": os.environ.get("PYTHONHASHSEED"),
        "variables_bytes": size_bytes(dict(os.environ)),
        "packages": _packages(),
        "libraries": loaded_libraries(),
        "host": {**host(), "cores": cores(), "cgroup": limits()},
    }


def private_mib() -> float | None:
    """Memory of this process alone: not shared with its parent, or with processes that mapped the same files."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return round(sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024, 1)


def thread_pools() -> dict[str, Any]:
    """Size of every thread pool in this process: BLAS and OpenMP as loaded, torch's two, TensorFlow's two (0: as many
    threads as cores)."""
    pools: dict[str, Any] = {}
    try:
        import threadpoolctl
    except ImportError:
        pools["blas and openmp"] = "not readable: threadpoolctl is not installed"
    else:
        for pool in threadpoolctl.threadpool_info():
            pools[f"{pool['internal_api']} ({Path(pool['filepath']).name})"] = pool["num_threads"]
    torch, tensorflow = sys.modules.get("torch"), sys.modules.get("tensorflow")
    if torch is not None:
        pools |= {"torch intra-op": torch.get_num_threads(), "torch inter-op": torch.get_num_interop_threads()}
    if tensorflow is not None:
        threading = tensorflow.config.threading
        pools |= {
            "tensorflow intra-op": threading.get_intra_op_parallelism_threads(),
            "tensorflow inter-op": threading.get_inter_op_parallelism_threads(),
        }
    return pools


def open_sockets() -> frozenset[str]:
    """Inodes of the sockets that this process holds."""
    own = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{descriptor}")
        except FileNotFoundError:  # the listing's own descriptor
            continue
        if target.startswith("socket:["):
            own.add(target[8:-1])
    return frozenset(own)


def bound_sockets(but: frozenset[str]) -> dict[str, list[str]]:
    """Local IP addresses of this process's TCP sockets, `listening` and `connected`, which its transport bound. `but`:
    inodes of other sockets."""
    own = open_sockets() - but
    bound: dict[str, set[str]] = {"listening": set(), "connected": set()}
    for name in _TCP_FILES if own else ():
        path = Path("/proc/self/net") / name
        for fields in (line.split() for line in (path.read_text().splitlines()[1:] if path.exists() else [])):
            if fields[9] in own:
                bound["listening" if fields[3] == _LISTEN else "connected"].add(_address(fields[1].partition(":")[0]))
    return {kind: sorted(addresses) for kind, addresses in bound.items()}


def _address(digits: str) -> str:
    """The kernel writes addresses as 32-bit words in the machine's byte order."""
    groups = [bytes.fromhex(digits[at : at + 8]) for at in range(0, len(digits), 8)]
    address = ipaddress.ip_address(b"".join(word[::-1] if sys.byteorder == "little" else word for word in groups))
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _threads() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads:"))


def _framework_threads() -> int | None:
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads()) if torch is not None else None


def read_ahead() -> None:
    """Called before the fork: reads once what all ranks would find in the same files, the versions of packages and
    libraries that are loaded already."""
    _packages()
    loaded_libraries()


def _packages() -> dict[str, str]:
    return {module: _version(module) for module in _PACKAGES if module in sys.modules}


@functools.cache
def _version(module: str) -> str:
    try:
        return importlib.metadata.version(_PACKAGES[module])
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules[module], "__version__", "unknown"))
