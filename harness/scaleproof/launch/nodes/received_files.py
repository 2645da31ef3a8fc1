"""Files that nodes send to the coordinator: which names a node may write in the launch's folder, and how they are
written there."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import Any, BinaryIO

from scaleproof.core.board import LINE
from scaleproof.rank.status_publisher import processes_file

KEYS = "rendezvous"
"""Folder of the keys of core/rendezvous.py. Any rank may publish any key, once."""
ARTIFACTS = "artifacts"
_PLAIN = re.compile(r"[^./\x00-\x1f\x7f][^/\x00-\x1f\x7f]{0,254}")
LARGEST = 8 << 30
"""Bytes of one file that a node may send."""


def is_plain(name: str) -> bool:
    """Whether this is the name of a file: no path, not hidden, no control characters."""
    return bool(_PLAIN.fullmatch(name))


def is_key(name: str) -> bool:
    """Whether this is the path of a key in the launch's folder."""
    folder, _, key = name.rpartition("/")
    return folder == KEYS and is_plain(key)


def artifact_name(node: int, name: str) -> str:
    """The path under which a node sends an artifact of its program; each node has a folder for these."""
    return f"{ARTIFACTS}-{node}/{name}"


class ReceivedFiles:
    """Files of one node and its ranks, written into the launch's folder."""

    def __init__(self, folder: Path, node: int, ranks: tuple[int, ...]) -> None:
        self.folder, self.node, self.ranks = folder, node, ranks
        self._logs = {f"rank-{rank}.log" for rank in ranks}
        self._reports = {f"rank-{rank}.json" for rank in ranks}
        others = {name for rank in ranks for name in (f"rank-{rank}.events", f"exit-{rank}.json")}
        self._own = self._reports | others | {processes_file(folder, node).name}
        self._sizes: dict[str, int] = {}

    def may_write(self, name: str) -> bool:
        """Whether the node may send a file of this name: reports, events and exit files of its own ranks, the states of
        their processes, keys, and artifacts of its programs."""
        folder, _, plain = name.rpartition("/")
        is_artifact = name == artifact_name(self.node, plain) and is_plain(plain)
        return name in self._own or is_key(name) or is_artifact

    def write(self, message: dict[str, Any], body: bytes) -> str:
        """Write a piece of a file; returns the file's name once it is complete, else an empty string. ValueError for a
        file that this node may not send."""
        name = str(message["name"])
        if not self.may_write(name):
            raise ValueError(f"it sent a file {name[:80]!r}, which is not its own to write")
        path = self.folder / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        draft = path.with_name(f".{path.name}.{self.node}")
        self._sizes[name] = len(body) + (0 if message["first"] else self._sizes.get(name, 0))
        if self._sizes[name] > LARGEST:
            raise ValueError(f"its file {name!r} is larger than {LARGEST} bytes")
        with _opened(draft, os.O_TRUNC if message["first"] else os.O_APPEND) as file:
            file.write(body)
        if not message["last"]:
            return ""
        if is_key(name) and path.exists():
            raise ValueError(f"it sent the key {name[:80]!r}, which another node has published")
        if name in self._reports:
            self._move_artifacts(draft)
        draft.rename(path)
        return name

    def add_to_log(self, message: dict[str, Any], body: bytes) -> None:
        """Append to the log of one of the node's ranks."""
        name = str(message["name"])
        if name not in self._logs:
            raise ValueError(f"it added to {name[:80]!r}, which is no log of its ranks")
        with _opened(self.folder / name, os.O_APPEND) as file:
            file.write(body)

    def write_board_line(self, message: dict[str, Any], body: bytes) -> None:
        """Write the line of one of the node's ranks."""
        rank = int(message["rank"])
        if rank not in self.ranks or len(body) != LINE:
            raise ValueError(f"it sent a line of {len(body)} bytes for rank {rank}")
        with (self.folder / "board").open("r+b", buffering=0) as board:
            os.pwrite(board.fileno(), body, rank * LINE)

    def _move_artifacts(self, report: Path) -> None:
        """Change the paths of artifacts in a rank's report from those on the node to those in the launch's folder."""
        fields = json.loads(report.read_text())
        fields["artifacts"] = {
            name: str(self.folder / artifact_name(self.node, Path(path).name))
            for name, path in fields.get("artifacts", {}).items()
        }
        report.write_text(json.dumps(fields))


def _opened(path: Path, mode: int) -> BinaryIO:
    """Open a file for writing; ValueError where the path is a symbolic link."""
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | mode, 0o644), "wb")
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"{path.name[:80]!r} is a symbolic link, which nobody writes through") from None
        raise
