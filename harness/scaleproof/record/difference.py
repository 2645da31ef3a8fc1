"""Uncommitted changes of the code that ran. Their text is written once per digest, beside the records."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaleproof.paths import PROJECT

_PATHS = ("harness", "suites", "pyproject.toml", "requirements.lock")
"""Paths that can change a result."""
FOLDER = "differences"
MOST_BYTES = 1 << 20
_SECRET = re.compile(r"(?i)((?:token|secret|passw(?:or)?d|api[_-]?key|credential)[\w-]*[\"']?\s*[:=]\s*)\S.*")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Difference:
    """`sha256` is the digest of the whole text, before secrets are masked and the text is cut."""

    sha256: str
    nbytes: int
    text: str


@functools.cache
def difference() -> Difference | None:
    """The diff of tracked files to HEAD, and names and digests of new files; None without a checkout or changes."""
    tracked = _git("diff", "HEAD", "--", *_PATHS)
    new = _git("ls-files", "--others", "--exclude-standard", "--", *_PATHS)
    if tracked is None or new is None:
        return None
    lines = [f"new file {name} sha256 {_sha256(PROJECT / name)}" for name in sorted(new.splitlines())]
    text = tracked + "".join(f"{line}\n" for line in lines)
    if not text:
        return None
    return Difference(hashlib.sha256(text.encode()).hexdigest(), len(text.encode()), masked(text))


def masked(text: str) -> str:
    """The text, cut to MOST_BYTES, with a mask over everything that looks like a secret."""
    text = _SECRET.sub(r"\1(masked)", _PRIVATE_KEY.sub("(private key masked)", text))
    if len(text.encode()) <= MOST_BYTES:
        return text
    beginning = text.encode()[:MOST_BYTES].decode(errors="ignore")
    return f"{beginning}\n(cut: {len(text.encode()) - MOST_BYTES} more bytes)\n"


def write_difference(results: Path) -> dict[str, Any] | None:
    """Write the text to `differences/SHA256.diff` of the results folder unless it is there. Returns digest, size and
    file name, for the record."""
    changes = difference()
    if changes is None:
        return None
    path = results / FOLDER / f"{changes.sha256[:16]}.diff"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(changes.text)
        draft.rename(path)
    return {"sha256": changes.sha256, "nbytes": changes.nbytes, "file": f"{FOLDER}/{path.name}"}


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"not readable: {error.strerror}"


def _git(*arguments: str) -> str | None:
    try:
        result = subprocess.run(["git", "-C", str(PROJECT), *arguments], capture_output=True, timeout=10)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return result.stdout.decode(errors="replace") if result.returncode == 0 else None
