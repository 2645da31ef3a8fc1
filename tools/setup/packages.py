"""The pinned packages: read the lock, download wheels once into the user's cache, install environments from there."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.setup.console import CommandError, SetupError, Steps, run

DEFAULT_TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
FROM_SOURCE = "horovod"
CHUNK = 12  # packages per pip call: an interrupted download repeats at most this many


@dataclass(frozen=True, slots=True)
class Pin:
    """One line of the lock."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


def normal(name: str) -> str:
    """A package name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path) -> list[Pin]:
    """The pins of the lock file, in its order."""
    pins = []
    for line in path.read_text().splitlines():
        text = line.split("#")[0].strip()
        if text:
            name, _, version = text.partition("==")
            pins.append(Pin(normal(name), version))
    return pins


def digest(*paths: Path) -> str:
    """First 12 hex digits of the SHA-256 of some files' content."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:12]


def cached_wheels(folder: Path) -> set[tuple[str, str]]:
    """(name, version) of every wheel in a folder."""
    parts = [path.name.split("-") for path in folder.glob("*.whl")]
    return {(normal(part[0]), part[1]) for part in parts}


def missing_pins(pins: Sequence[Pin], folder: Path) -> list[Pin]:
    """Pins whose wheel is not in the cache yet; Horovod has a build of its own."""
    cached = cached_wheels(folder)
    return [pin for pin in pins if (pin.name, pin.version) not in cached and pin.name != FROM_SOURCE]


def torch_indexes(requested: str | None) -> list[str | None]:
    """Package indexes for the CPU build of torch, in turn: what TORCH_INDEX names, else pip's own settings, else
    PyTorch's index."""
    return [requested] if requested else [None, DEFAULT_TORCH_INDEX]


class Wheels:
    """The folder of downloaded wheels. `execute` runs a command and raises CommandError; tests pass their own."""

    def __init__(self, folder: Path, python: Path, log: Path, execute: Callable[..., str] = run) -> None:
        self.folder, self.python, self.log, self.execute = folder, python, log, execute

    def fetch(self, pins: Sequence[Pin], steps: Steps, torch_index: str | None) -> None:
        """Download every wheel that is missing, torch first; wheels fetched before an interruption are not fetched
        again."""
        missing = missing_pins(pins, self.folder)
        steps.progress(f"{len(missing)} packages")
        torch = [pin for pin in missing if pin.name == "torch"]
        rest = [pin for pin in missing if pin.name != "torch"]
        chunks = ([torch] if torch else []) + [rest[at : at + CHUNK] for at in range(0, len(rest), CHUNK)]
        received = 0
        for chunk in chunks:
            text = f"{received} of {len(missing)} packages"
            indexes = torch_indexes(torch_index) if chunk is torch else [None]
            self._fetch_chunk(chunk, indexes, lambda _line, text=text: steps.progress(text))  # type: ignore[misc]
            received += len(chunk)

    def _fetch_chunk(self, chunk: Sequence[Pin], indexes: Sequence[str | None], line: Callable[[str], None]) -> None:
        part = self.folder / f".part-{os.getpid()}"
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob(".part-*"):
            shutil.rmtree(old)
        for index in indexes:
            extra = ["--extra-index-url", index] if index else []
            argv = [
                str(self.python),
                "-m",
                "pip",
                "wheel",
                "--use-pep517",
                "--no-deps",
                "--retries",
                "2",
                "-w",
                str(part),
                *extra,
                *map(str, chunk),
            ]
            try:
                self.execute(argv, self.log, line=line)
            except CommandError as error:
                if index == indexes[-1]:
                    raise SetupError(_download_problem(error.output, chunk, self.log)) from error
                continue
            break
        for wheel in part.glob("*.whl"):
            wheel.replace(self.folder / wheel.name)
        shutil.rmtree(part)


def _download_problem(output: str, chunk: Sequence[Pin], log: Path) -> str:
    unreachable = re.search(
        r"Failed to establish|name resolution|Connection ?Error|NewConnectionError|Max retries|timed out|"
        r"Network is unreachable",
        output,
    )
    if chunk[0].name == "torch" and "No matching distribution" in output:
        return (
            f"pip finds no CPU build {chunk[0]}; set TORCH_INDEX to an index that has it "
            f"(default {DEFAULT_TORCH_INDEX}); see {log}"
        )
    if unreachable:
        return (
            "pip cannot reach its package index (offline?); connect and type the same command again: "
            "finished downloads are kept"
        )
    reason = next(
        (line for line in reversed(output.splitlines()) if "ERROR:" in line and "one or more wheels" not in line),
        "no reason given",
    ).strip()
    return f"pip could not fetch the pinned packages: {reason}; the whole output is in {log}"


def base_python() -> str:
    """The Python from which the active environment was made: `.venv` itself may be active and is about to be
    replaced."""
    return str(getattr(sys, "_base_executable", sys.executable))


def make_venv(folder: Path, log: Path, execute: Callable[..., str] = run) -> Path:
    """Create a virtual environment, replacing an existing one. Returns its Python."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    execute([base_python(), "-m", "venv", "--clear", str(folder)], log)
    return folder / "bin" / "python"


def install(
    uv: Path,
    python: Path,
    requirements: Sequence[str],
    links: Sequence[Path],
    cache: Path,
    log: Path,
    *options: str,
    line: Callable[[str], None] | None = None,
) -> None:
    """Install with uv from wheels only: no index, no resolution, hard links into uv's cache where the file system
    supports them."""
    env = {**os.environ, "UV_CACHE_DIR": str(cache), "UV_LINK_MODE": "hardlink", "UV_NO_CONFIG": "1", "UV_OFFLINE": "1"}
    find_links = [word for folder in links for word in ("--find-links", str(folder))]
    argv = [
        str(uv),
        "pip",
        "install",
        "--python",
        str(python),
        "--no-index",
        "--no-deps",
        *find_links,
        *options,
        *requirements,
    ]
    run(argv, log, env=env, line=line)


def link_executors(root: Path, venv: Path) -> None:
    """Snakemake finds executors by the names of top-level packages: link those of this clone's profiles."""
    for folder in root.glob("profiles/*/snakemake_executor_plugin_*"):
        for site_packages in venv.glob("lib/python3.*/site-packages"):
            link = site_packages / folder.name
            if not link.is_symlink() or not link.exists():
                link.unlink(missing_ok=True)
                link.symlink_to(folder)


def share_bytecode(source: Path, target: Path) -> int:
    """Hard-link compiled modules from one environment into another of the same packages; the number of files.

    Python checks each against the time and size of its source, so a stale one is compiled again. Without this
    every rank of a clone whose user has PYTHONDONTWRITEBYTECODE set would compile torch and TensorFlow at every start
    (6 s).
    """
    linked = 0
    for folder, _, files in os.walk(source):
        if not folder.endswith("__pycache__"):
            continue
        target_folder = target / os.path.relpath(folder, source)
        if not target_folder.parent.is_dir():
            continue
        target_folder.mkdir(exist_ok=True)
        for name in files:
            try:
                os.link(os.path.join(folder, name), target_folder / name)
            except FileExistsError:
                continue
            except OSError:  # on another file system Python compiles at import
                return linked
            linked += 1
    return linked
