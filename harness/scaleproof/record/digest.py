"""Digest of the code and id of the machine. A record holds both, and a resumed run compares them."""

from __future__ import annotations

import functools
import hashlib
import platform
import subprocess

import scaleproof
from scaleproof.core.record_schema import Code
from scaleproof.paths import PACKAGE
from scaleproof.record.host import cores, cpu_model, memory_mib
from scaleproof.spec import registry

ROOMS = (
    "core",
    "rank",
    "programs",
    "strategies",
    "collectives",
    "remote",
    "transports",
    "workloads",
    "frameworks",
    "fabric",
    "launch/launchers",
)
_FILES = ("spec/case.py", "spec/common_case.py", "spec/emulated.py")
SIMULATED_ROOMS = ("simulate", "collectives", "strategies", "workloads")
_SIMULATED_FILES = (
    "spec/case.py",
    "spec/common_case.py",
    "spec/cluster.py",
    "spec/emulated.py",
    "fabric/shortest_paths.py",
)


@functools.cache
def code_digest(fabric: str = "") -> str:
    """First 16 hex digits of the SHA-256 over names and contents of the packages that run inside a launch; for a fabric
    that only predicts, of those that the simulator uses."""
    rooms, files = (
        (SIMULATED_ROOMS, _SIMULATED_FILES) if fabric and registry.get("fabric", fabric).predicted else (ROOMS, _FILES)
    )
    paths = [
        path for room in rooms for pattern in ("*.py", "*.yaml", "*.proto") for path in (PACKAGE / room).rglob(pattern)
    ]
    digest = hashlib.sha256()
    for path in sorted([*paths, *(PACKAGE / name for name in files)]):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(PACKAGE)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


@functools.cache
def rooms_digest(*rooms: str) -> str:
    """First 16 hex digits of the SHA-256 over names and contents of packages. It is the version of results that their
    code derives from records."""
    digest = hashlib.sha256()
    for path in sorted(path for room in rooms for path in (PACKAGE / room).rglob("*.py")):
        digest.update(f"{path.relative_to(PACKAGE)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def machine_id() -> str:
    """First 12 hex digits of the SHA-256 of processor model, architecture, cores, memory in two digits, and the
    kernel's first two numbers."""
    memory = f"{memory_mib():.1e}"
    kernel = ".".join(platform.release().split(".")[:2])
    text = "/".join([cpu_model(), platform.machine(), str(cores()), memory, kernel])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@functools.cache
def code_version(fabric: str = "") -> Code:
    """Version, commit and dirty flag; commit and flag are None outside a git checkout. `fabric`: see code_digest. Which
    files a case uses is added by `used_code.code_of`."""
    commit = _git("rev-parse", "HEAD")
    status = _git("status", "--porcelain", "--", str(PACKAGE)) if commit else None
    return Code(
        version=scaleproof.__version__,
        commit=commit,
        dirty=None if status is None else bool(status),
        digest=code_digest(fabric),
    )


def _git(*arguments: str) -> str | None:
    try:
        result = subprocess.run(["git", "-C", str(PACKAGE), *arguments], capture_output=True, text=True, timeout=10)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None
