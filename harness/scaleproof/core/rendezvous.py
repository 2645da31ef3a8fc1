"""Keys and values that the ranks of one launch share through a folder, to find each other before any transport
exists."""

from __future__ import annotations

import json
import os
import time
import urllib.parse
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaleproof.core.board import Post

POLL_S = 0.002
GATHER_S = 0.02
"""The longest pause between two looks for ranks that may still train for long."""


class RendezvousTimeout(RuntimeError):
    """A key did not appear in time."""

    code = "rendezvous_timeout"


class Rendezvous:
    """JSON values in a private folder. A key is written once, atomically, and read by polling."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self.folder = folder
        self.post: Post | None = None
        self._prefix = prefix

    def within(self, prefix: str) -> Rendezvous:
        """The same folder, with keys that are apart from those without this prefix."""
        return Rendezvous(self.folder, f"{self._prefix}{prefix}.")

    def publish(self, key: str, value: Any) -> None:
        """Publish a JSON-serialisable value."""
        path = self._path(key)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(json.dumps(value))
        draft.rename(path)

    def get(self, key: str, timeout_s: float = 60.0, peer: int = -1) -> Any:
        """Wait for a key and return its value; RendezvousTimeout. `peer`: the rank that publishes the key."""
        path, deadline = self._path(key), time.monotonic() + timeout_s
        waiting = False
        while True:
            try:
                value = json.loads(path.read_text())
            except FileNotFoundError:
                if self.post and not waiting:
                    self.post.wait(peer)
                    waiting = True
                if time.monotonic() > deadline:
                    raise RendezvousTimeout(f"no rank published {key!r} within {timeout_s:g} s") from None
                time.sleep(POLL_S)
                continue
            if self.post and waiting:
                self.post.stop_waiting()
            return value

    def exchange(self, key: str, rank: int, world_size: int, value: Any, timeout_s: float = 60.0) -> list[Any]:
        """Publish this rank's value and return the values of all ranks in rank order; also a barrier."""
        self.publish(f"{key}.{rank}", value)
        return [self.get(f"{key}.{peer}", timeout_s, peer) for peer in range(world_size)]

    def find(self, key: str) -> Any | None:
        """The value of a key, if it was published."""
        try:
            return json.loads(self._path(key).read_text())
        except FileNotFoundError:
            return None

    def gather(
        self, key: str, rank: int, ranks: Collection[int], value: Any, gone: Callable[[int], bool]
    ) -> dict[int, Any]:
        """Publish this rank's value and wait, however long, for those of `ranks`, without ranks that are gone before
        they have published one."""
        self.publish(f"{key}.{rank}", value)
        found: dict[int, Any] = {}
        for peer in ranks:
            if self.post:
                self.post.wait(peer)
            pause = POLL_S
            while (published := self.find(f"{key}.{peer}")) is None and not gone(peer):
                time.sleep(pause)
                pause = min(2 * pause, GATHER_S)
            if published is not None:
                found[peer] = published
        if self.post:
            self.post.stop_waiting()
        return found

    def _path(self, key: str) -> Path:
        return self.folder / urllib.parse.quote(self._prefix + key, safe=".-_")
