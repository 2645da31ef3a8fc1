"""A suite's own programs: the Python files in its folder `programs`."""

from __future__ import annotations

import hashlib
from pathlib import Path


def programs_folder(suite_folder: Path) -> Path:
    """Where a suite keeps its own programs; it need not exist."""
    return suite_folder / "programs"


def programs_digest(folder: Path) -> str:
    """First 16 hex digits of the SHA-256 over names and contents of the folder's Python files."""
    total = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        content = path.read_bytes()
        total.update(f"{path.name} {len(content)}\n".encode() + content)
    return total.hexdigest()[:16]
