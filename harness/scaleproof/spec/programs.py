"""A suite's own programs: the Python files in its folder `programs`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple


def programs_folder(suite_folder: Path) -> Path:
    """Where a suite keeps its own programs; it need not exist."""
    return suite_folder / "programs"


class OwnPrograms(NamedTuple):
    """Names of the programs that a case can run, and the digest of all files."""

    entries: list[str]
    digest: str


def own_programs(suite_folder: Path) -> OwnPrograms:
    """Those of a suite."""
    folder = programs_folder(suite_folder)
    return OwnPrograms(sorted(path.stem for path in folder.glob("[a-z]*.py")), programs_digest(folder))


def programs_digest(folder: Path) -> str:
    """First 16 hex digits of the SHA-256 over names and contents of the folder's Python files."""
    total = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        content = path.read_bytes()
        total.update(f"{path.name} {len(content)}\n".encode() + content)
    return total.hexdigest()[:16]
