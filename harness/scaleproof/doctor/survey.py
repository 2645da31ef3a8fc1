"""Which plugins and tools work on this machine; if one does not, why, and what to do about it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from scaleproof.fabric.guests.guest_plan import INTERFACE
from scaleproof.fabric.guests.guests import Guests
from scaleproof.fabric.netns.netns import Netns
from scaleproof.spec import registry
from scaleproof.spec.registry import Kind

IMPORT_TIMEOUT_S = 120
# The distribution that brings a module, where it has another name.
_DISTRIBUTIONS = {"grpc": "grpcio", "tensorflow": "tensorflow-cpu"}
# What to run to know that a library works, where importing its top module does not tell. MPI is loaded and not started:
# a lone start leaves a segment behind.
_IMPORTS = {
    "mpi4py": "import mpi4py; mpi4py.rc.initialize = False; import mpi4py.MPI",
    "horovod": "import horovod.torch",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of the table: a registered name, or a tool (`kind` 'tool') that some part needs."""

    kind: str
    name: str
    available: bool
    version: str
    summary: str
    why: str = ""
    advice: str = ""


def survey(import_libraries: bool = False) -> list[Finding]:
    """Every registered name and every tool. `import_libraries`: also import each library, in a process of its own
    (seconds)."""
    broken = _broken_imports() if import_libraries else {}
    rows = [_finding(kind, name, broken) for kind, table in registry.TABLES.items() for name in table]
    return rows + [_chromium(), _snakemake(), _slurm()]


def _finding(kind: Kind, name: str, broken: dict[str, str]) -> Finding:
    entry, state = registry.entry(kind, name), registry.availability(kind, name)
    version = ", ".join(f"{_distribution(module)} {_version(module)}" for module in entry.requires)
    row = Finding(
        kind, name, state.available, version if state.available else "", entry.summary, state.why, state.advice
    )
    checks = [
        lambda: _implemented(entry),
        lambda: next((broken[module] for module in entry.requires if module in broken), ""),
    ]
    checks += [_CHECKS[kind, name]] if (kind, name) in _CHECKS else []
    why = next((found for found in (check() for check in checks) if found), "") if state.available else ""
    advice = _on_nodes(name)[1] if why and kind == "fabric" and name in _ON_NODES else entry.advice
    return replace(row, available=False, why=why, advice=advice) if why else row


def _implemented(entry: registry.Entry) -> str:
    module = entry.target.partition(":")[0]
    return "" if importlib.util.find_spec(module) else f"module {module} is missing from this installation"


def _mpirun() -> str:
    """The launcher takes the program beside this Python and no other."""
    program = Path(sys.executable).parent / "mpirun"
    if not program.exists():
        return f"no mpirun beside {sys.executable}"
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    said = (done.stdout + done.stderr).strip().splitlines() or [""]
    return (
        ""
        if done.returncode == 0 and "Open MPI" in said[0]
        else f"mpirun --version ended with {done.returncode}: {said[0][:80]}"
    )


def _horovod() -> str:
    """Horovod's native libraries are the only place that says what it was built with, short of importing a framework."""
    spec = importlib.util.find_spec("horovod")
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    for framework in ("torch", "tensorflow"):
        libraries = list((folder / framework).glob("mpi_lib*.so"))
        if not libraries:
            return f"built without {framework}"
        if not any(b"GlooContext" in library.read_bytes() for library in libraries):
            return f"built without Gloo for {framework}"
    return ""


def _loopback() -> str:
    import psutil

    state = psutil.net_if_stats().get("lo")
    return "" if state and state.isup else "interface lo is down"


_ON_NODES: dict[str, Callable[[str], Guests | Netns]] = {"guests": Guests, "netns": Netns}
"""Fabrics that make their nodes."""


def _on_nodes(fabric: str) -> tuple[str, str]:
    """Why no such node can run here, and what to do; two empty texts where they can."""
    return _ON_NODES[fabric](INTERFACE).obstacle() or ("", "")


def _shared_memory() -> str:
    if platform.machine() not in ("x86_64", "AMD64"):
        return f"needs the store order of x86-64, this is {platform.machine()}"
    return "" if hasattr(os, "memfd_create") else "this kernel has no memfd_create"


_CHECKS: dict[tuple[str, str], Callable[[], str]] = {
    ("transport", "mpi"): _mpirun,
    ("launcher", "mpirun"): _mpirun,
    ("transport", "horovod"): _horovod,
    ("transport", "shm"): _shared_memory,
    ("fabric", "host"): _loopback,
    ("fabric", "guests"): lambda: _on_nodes("guests")[0],
    ("fabric", "netns"): lambda: _on_nodes("netns")[0],
}


def _chromium() -> Finding:
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    summary = "a browser, for the tests of the pages only"
    if found:
        return Finding("tool", "chromium", True, found, summary)
    return Finding(
        "tool",
        "chromium",
        False,
        "",
        summary,
        "no such program",
        "type `apt-get install chromium`; nothing else needs it",
    )


def _snakemake() -> Finding:
    found = shutil.which(
        "snakemake", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    )
    summary = "runs whole suites: `snakemake das2016`"
    if found:
        return Finding("tool", "snakemake", True, f"snakemake {_version('snakemake')}", summary)
    return Finding("tool", "snakemake", False, "", summary, "no such program", "type `make env`")


def _slurm() -> Finding:
    found, summary = (
        shutil.which("sbatch"),
        "submits experiments to a cluster: `snakemake das2016 --profile profiles/slurm`",
    )
    if found:
        return Finding("tool", "slurm", True, found, summary)
    return Finding(
        "tool",
        "slurm",
        False,
        "",
        summary,
        "no program sbatch",
        "go to a login node, or try it on this machine: docs/clusters.md",
    )


def _distribution(module: str) -> str:
    return _DISTRIBUTIONS.get(module, module)


def _version(module: str) -> str:
    for name in (_distribution(module), module):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "of unknown version"


def _broken_imports() -> dict[str, str]:
    """Modules that are installed and cannot be imported, with the last line of what they said."""
    modules = sorted(
        {module for table in registry.TABLES.values() for entry in table.values() for module in entry.requires}
    )
    present = [module for module in modules if importlib.util.find_spec(module)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return {module: said for module, said in zip(present, pool.map(_import_error, present), strict=True) if said}


def _import_error(module: str) -> str:
    program = _IMPORTS.get(module, f"import {module}")
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=IMPORT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"`import {module}` took longer than {IMPORT_TIMEOUT_S} s"
    if done.returncode == 0:
        return ""
    last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
    return f"`import {module}` fails: {last[:160]}"
