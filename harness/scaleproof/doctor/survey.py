"""Which plugins and tools work on this machine; if one does not, why, and what to do about it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from scaleproof.spec import registry
from scaleproof.spec.plugins import FabricPlugin, Plugin, TransportPlugin

IMPORT_TIMEOUT_S = 120
_DISTRIBUTIONS = {"grpc": "grpcio", "tensorflow": "tensorflow-cpu", "sklearn": "scikit-learn"}
"""The distribution of a module, if its name differs."""
_IMPORTS = {
    "mpi4py": "import mpi4py; mpi4py.rc.initialize = False; import mpi4py.MPI",
    "horovod": "import horovod.torch",
}
"""The program that shows that a library works, if importing its top module is not enough. MPI is loaded but not
initialised: initialising it in a single process leaves a shared-memory segment behind."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a plugin works here, or a tool (`kind` 'tool') that some commands or tests need."""

    kind: str
    name: str
    available: bool
    version: str
    summary: str
    why: str = ""
    advice: str = ""


class _Problem(NamedTuple):
    """Why a plugin would fail here, and what to do."""

    why: str
    advice: str


def survey(import_libraries: bool = False) -> list[Finding]:
    """Every plugin and every tool. `import_libraries`: also import each library, in a separate process (seconds)."""
    broken = _broken_imports() if import_libraries else {}
    rows = [_finding(plugin, broken) for kind in registry.FOLDERS for plugin in registry.plugins(kind).values()]
    return rows + [_chromium(), _snakemake(), _slurm()]


def _finding(plugin: Plugin, broken: dict[str, str]) -> Finding:
    state = registry.availability(plugin.kind, plugin.name)
    version = ", ".join(f"{_distribution(module)} {_version(module)}" for module in plugin.requires)
    row = Finding(
        plugin.kind,
        plugin.name,
        state.available,
        version if state.available else "",
        plugin.summary,
        state.why,
        state.advice,
    )
    if not state.available:
        return row
    why, advice = _problem(plugin)
    why = why or next((broken[module] for module in plugin.requires if module in broken), "")
    return replace(row, available=False, why=why, advice=advice) if why else row


def _problem(plugin: Plugin) -> _Problem:
    """The known problem of an installed plugin on this machine; empty without one."""
    if plugin.check_installation is not None and (why := plugin.check_installation()):
        return _Problem(why, plugin.advice)
    if isinstance(plugin, TransportPlugin) and (why := _launcher_problem(plugin.launcher)):
        return _Problem(why, plugin.advice)
    if isinstance(plugin, FabricPlugin) and plugin.makes_nodes:
        return _Problem(*(plugin.load()(plugin.interface).obstacle() or ("", "")))
    return _Problem("", plugin.advice)


def _launcher_problem(name: str) -> str:
    check = registry.get("launcher", name).check_installation
    return check() if check else ""


def _chromium() -> Finding:
    path = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    summary = "a browser, for the tests of the pages only"
    if path:
        return Finding("tool", "chromium", True, path, summary)
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
    path = shutil.which(
        "snakemake", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    )
    summary = "runs whole suites: `snakemake das2016`"
    if path:
        return Finding("tool", "snakemake", True, f"snakemake {_version('snakemake')}", summary)
    return Finding("tool", "snakemake", False, "", summary, "no such program", "type `make env`")


def _slurm() -> Finding:
    path = shutil.which("sbatch")
    summary = "submits experiments to a cluster: `snakemake das2016 --profile profiles/slurm`"
    if path:
        return Finding("tool", "slurm", True, path, summary)
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
    """Modules that are installed but cannot be imported, with the last line of the error."""
    modules = sorted(
        {
            module
            for kind in registry.FOLDERS
            for plugin in registry.plugins(kind).values()
            for module in plugin.requires
        }
    )
    present = [module for module in modules if importlib.util.find_spec(module)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = pool.map(_import_error, present)
        return {module: error for module, error in zip(present, errors, strict=True) if error}


def _import_error(module: str) -> str:
    program = _IMPORTS.get(module, f"import {module}")
    try:
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=IMPORT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"`import {module}` took longer than {IMPORT_TIMEOUT_S} s"
    if result.returncode == 0:
        return ""
    last = (result.stderr.strip().splitlines() or [f"ended with {result.returncode}"])[-1]
    return f"`import {module}` fails: {last[:160]}"
