"""The four files of the OSU micro-benchmarks that the two programs consist of, byte for byte as in one commit."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from tools.setup.console import SetupError

VERSION = "5.5"
"""The first versions cannot be used: option -m of both programs came with 5.4.0, -W of osu_bw with 5.4.2."""
REPOSITORY = "https://github.com/qzan9/osu-micro-benchmarks"
COMMIT = "f931194fd72a75b0b38edf300c134c6dcb61878c"
SHA256 = {
    "mpi/pt2pt/osu_latency.c": "361b9256e9102a5789eee2e654e03c1d5fe5f81c56c8936f8ef8df30485bdcae",
    "mpi/pt2pt/osu_bw.c": "5fcdf9c8532744344c182d7b403dfd4faf3d15f578d22b04f0b3771e6419ca26",
    "util/osu_util.c": "e3322acc08fbad8b8dcf5a3f45d4af5817d2ddbf861450cabe722c7d8ac46df8",
    "util/osu_util.h": "279ad616a0b065b940bdb5881c173abbd728d337dac3a0061ab3110e80bc3473",
}


def taken(source: Path) -> dict[str, bytes]:
    """Content of each file by its path. From a clone: of the commit, whatever is checked out there. From a folder
    without git: its files, if their SHA-256 is right. SetupError, one line, otherwise."""
    if not source.is_dir():
        raise SetupError(f"{source} is no folder; type: git clone {REPOSITORY} {source}")
    read = _of_commit if (source / ".git").exists() else _of_folder
    return {path: read(source, path) for path in SHA256}


def _of_commit(source: Path, path: str) -> bytes:
    # the stored object: git may change line ends where it checks a file out
    command = ["git", "-C", str(source), "cat-file", "blob", f"{COMMIT}:{path}"]
    completed = subprocess.run(command, capture_output=True, check=False)
    if completed.returncode:
        said = completed.stderr.decode(errors="replace").strip().splitlines() or ["git said nothing"]
        raise SetupError(f"{source} has no {path} of commit {COMMIT} of {REPOSITORY}: {said[0]}")
    return completed.stdout


def _of_folder(source: Path, path: str) -> bytes:
    try:
        content = (source / path).read_bytes()
    except OSError as error:
        raise SetupError(f"{source / path}: {error.strerror}; type: git clone {REPOSITORY} FOLDER") from error
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[path]:
        raise SetupError(f"{source / path} is not that of commit {COMMIT}: SHA-256 {found}, not {SHA256[path]}")
    return content
