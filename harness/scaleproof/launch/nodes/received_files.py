"""The keeper's side of files that are sent: what a node may write into the launch's folder, and how it is put there."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from scaleproof.core.board import LINE

_SAFE = re.compile(r"(rendezvous/)?[^./\x00-\x1f\x7f][^/\x00-\x1f\x7f]{0,254}")
_OF_RANK = re.compile(r"(?:rank|exit)-(\d+)\.[a-z]+")
_OURS = ("launch.json", "board", "launcher.log", "profile.json", "nodes.json", "record", "rendezvous", "fabric.json")
LARGEST = 8 << 30
"""Bytes of one file that a node may send."""


def is_safe(name: str) -> bool:
    """Whether it names a file directly in the launch's folder, or a key."""
    return bool(_SAFE.fullmatch(name))


class Inbox:
    """Files of one node. `theirs`: the launch's folder as the node has it, in which its ranks name their artifacts."""

    def __init__(self, folder: Path, node: int, ranks: tuple[int, ...]) -> None:
        self.folder, self.node, self.ranks = folder, node, ranks
        self._size: dict[str, int] = {}

    def may(self, name: str) -> bool:
        """Whether this node may write a file of this name: nothing of the supervisor's, nothing of another node's
        ranks."""
        of_rank = _OF_RANK.fullmatch(name)
        if name.startswith("processes-"):
            return name == f"processes-{self.node}.json"
        return is_safe(name) and name not in _OURS and (of_rank is None or int(of_rank[1]) in self.ranks)

    def file(self, message: dict[str, Any], body: bytes) -> str:
        """Keep a piece; the file's name once it is whole, else empty. ValueError for what this node may not send."""
        name = str(message["name"])
        if not self.may(name):
            raise ValueError(f"it sent a file {name[:80]!r}, which is not its own to write")
        place = self.folder / name
        draft = place.with_name(f".{place.name}.{self.node}")
        self._size[name] = len(body) + (0 if message["first"] else self._size.get(name, 0))
        if self._size[name] > LARGEST:
            raise ValueError(f"its file {name!r} is larger than {LARGEST} bytes")
        with draft.open("wb" if message["first"] else "ab") as file:
            file.write(body)
        if not message["last"]:
            return ""
        if name.startswith("rank-") and name.endswith(".json"):
            _adopt(draft, self.folder)
        draft.rename(place)
        return name

    def log(self, message: dict[str, Any], body: bytes) -> None:
        """Add to a log."""
        name = str(message["name"])
        if not (self.may(name) and name.startswith("rank-") and name.endswith(".log")):
            raise ValueError(f"it added to {name[:80]!r}, which is no log of its own")
        with (self.folder / name).open("ab") as file:
            file.write(body)

    def line(self, message: dict[str, Any], body: bytes) -> None:
        """A line of the board."""
        rank = int(message["rank"])
        if rank not in self.ranks or len(body) != LINE:
            raise ValueError(f"it sent a line of {len(body)} bytes for rank {rank}")
        with (self.folder / "board").open("r+b", buffering=0) as board:
            os.pwrite(board.fileno(), body, rank * LINE)


def _adopt(report: Path, folder: Path) -> None:
    """A rank's report names its artifacts where the node has them; here they lie in the launch's folder."""
    told = json.loads(report.read_text())
    told["artifacts"] = {name: str(folder / Path(path).name) for name, path in told.get("artifacts", {}).items()}
    report.write_text(json.dumps(told))
