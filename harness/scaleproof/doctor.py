"""What works on this machine, what does not and why, what to do about it, and what dead launches left behind."""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scaleproof.core.launch_spec import ENVIRONMENT
from scaleproof.fabric import small_clusters
from scaleproof.fabric.guests.guest_plan import INTERFACE
from scaleproof.fabric.guests.guests import Guests
from scaleproof.fabric.netns import core_quota
from scaleproof.fabric.netns.netns import Netns
from scaleproof.fabric.verbs import ports
from scaleproof.launch.launchers.base import SCRATCH
from scaleproof.launch.results_lock import locked
from scaleproof.launch.teardown import clean, clean_leftovers
from scaleproof.spec import registry
from scaleproof.spec.registry import Kind

IMPORT_TIMEOUT_S = 120
_ID = re.compile(r"[0-9a-f]{16}$")
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


def machine(results: Path) -> dict[str, Any]:
    """Cores, memory, disk of the results folder (bytes), kernel, Python."""
    import psutil

    from scaleproof.record.environment import cores, cpu_model

    memory = psutil.virtual_memory()
    existing = next(folder for folder in (results.absolute(), *results.absolute().parents) if folder.is_dir())
    return {
        "cores": cores(),
        "processor": cpu_model(),
        "memory_bytes": memory.total,
        "memory_available_bytes": memory.available,
        "disk_free_bytes": shutil.disk_usage(existing).free,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def verbs_ports() -> list[dict[str, Any]]:
    """Every port of every verbs device here: name, link layer, state, interfaces, whether it is software, its GIDs by
    index."""
    return [
        {
            "name": port.name,
            "link_layer": port.link_layer,
            "state": port.state,
            "lid": port.lid,
            "netdevs": list(port.netdevs),
            "software": port.software,
            "gids": [
                {"index": gid.index, "value": gid.value, "kind": gid.kind, "netdev": gid.netdev} for gid in port.gids
            ],
        }
        for port in ports()
    ]


def leftovers(results: Path) -> list[dict[str, str]]:
    """Staging folders, processes and shared memory of launches that nobody supervises any more, and what to do about
    each."""
    staged = (
        set() if supervised(results) else {folder.name for folder in (results / "staging").glob("*") if folder.is_dir()}
    )
    living = launch_processes()
    shared = [(path, path.name.removeprefix(SCRATCH)) for path in sorted(Path("/dev/shm").glob(f"{SCRATCH}*"))]
    groups = [(path, path.name.removeprefix(SCRATCH)) for path in core_quota.left(SCRATCH)]
    found = [("folder", str(results / "staging" / launch), launch) for launch in sorted(staged)]
    found += [("process", str(pid), launch) for pid, parent, launch in living if launch in staged or parent == 1]
    found += [
        ("shared memory", str(path), launch)
        for path, launch in shared
        if launch in staged or launch not in {known for _, _, known in living}
    ]
    found += [
        ("control group", str(path), launch)
        for path, launch in groups
        if launch in staged or launch not in {known for _, _, known in living}
    ]
    found += [("small cluster", str(folder), "") for folder in small_clusters.leftovers()]
    return [
        {"kind": kind, "what": what, "launch": launch, "advice": _advice(kind, what, launch in staged)}
        for kind, what, launch in found
    ]


def remove_leftovers(results: Path) -> list[str]:
    """What `leftovers` names, ended and removed; told in words. SpecError when a run has meanwhile begun in this
    folder."""
    left = leftovers(results)
    with locked(results):
        done = clean_leftovers(results / "staging")
    dead = {item["launch"]: "" for item in left if _ID.match(item["launch"])}
    for launch in dead:
        done += clean(launch)
    for folder in (item["what"] for item in left if item["kind"] == "small cluster"):
        small_clusters.remove(Path(folder))
    gone = [
        item["what"]
        for item in left
        if item["kind"] in ("small cluster", "shared memory") and not Path(item["what"]).exists()
    ]
    return list(dict.fromkeys([*done, *gone]))


def _advice(kind: str, what: str, staged: bool) -> str:
    if staged:
        return "the next `scaleproof run` into this folder removes it"
    return "`scaleproof doctor --clean` ends it" if kind == "process" else "`scaleproof doctor --clean` removes it"


def supervised(results: Path) -> bool:
    """Whether a supervisor holds the lock of this folder right now."""
    try:
        with (results / ".lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def launch_processes() -> list[tuple[int, int, str]]:
    """Pid, parent's pid and launch of every process that carries a launch's name in its environment."""
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            launch = process.environ().get(ENVIRONMENT)
            if launch:
                found.append((process.pid, process.ppid(), launch))
        except (psutil.Error, OSError):  # gone meanwhile, or another user's
            continue
    return found
