"""The version of what judges a suite's claims: under another one the same launches may get another verdict."""

from __future__ import annotations

import hashlib
from pathlib import Path

from scaleproof.claims.suite_metrics import suite_metrics_version

FILES = ("claims.yaml", "published.yaml", "suite.yaml", "tuned.yaml")
"""What is claimed, what the paper says, and which launches are planned."""


def judging_version(folder: Path) -> str:
    """First 16 hex digits of the SHA-256 over the code of metrics and verdicts and over a suite's FILES."""
    total = hashlib.sha256(suite_metrics_version(folder).encode())
    for path in (folder / name for name in FILES):
        total.update(f"\0{path.name}\0".encode() + (path.read_bytes() if path.exists() else b""))
    return total.hexdigest()[:16]
