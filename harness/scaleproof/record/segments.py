"""What follows from records, kept in pieces beside them: pieces are only added, put in place by one rename, and may be
deleted at any time."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

FOLDER = "index"
"""In a results folder."""
DRAFT_S = 3600.0
"""Age from which on a draft is nobody's."""


class Segments:
    """Tables of one kind and one version of the code that made them, in
    results/index/<kind>-<version>/<piece>/<table>.arrow, mapped when read.

    A folder that cannot be written to (no right, no room) keeps nothing, which costs time and no result."""

    def __init__(self, results: Path, kind: str, version: str) -> None:
        self.folder = results / FOLDER / f"{kind}-{version}"

    def read(self) -> Iterator[tuple[str, dict[str, pa.Table]]]:
        """Every piece by name; one that cannot be read whole is removed."""
        for piece in sorted(self.folder.iterdir()) if self.folder.is_dir() else []:
            if piece.name.startswith("."):
                self._forget_old(piece)
                continue
            try:
                yield (
                    piece.name,
                    {
                        path.stem: pa.ipc.open_file(pa.memory_map(str(path))).read_all()
                        for path in sorted(piece.glob("*.arrow"))
                    },
                )
            except (OSError, pa.ArrowException):
                shutil.rmtree(piece, ignore_errors=True)

    def add(self, tables: Mapping[str, pa.Table]) -> str:
        """One more piece; returns its name, empty when it could not be written. Pieces of this kind that other versions
        of the code made are removed."""
        name = uuid.uuid4().hex
        draft = self.folder / f".{name}"
        try:
            draft.mkdir(parents=True)
            for table, content in tables.items():
                with (
                    pa.OSFile(str(draft / f"{table}.arrow"), "wb") as target,
                    pa.ipc.new_file(target, content.schema) as writer,
                ):
                    writer.write_table(content)
            draft.rename(self.folder / name)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            return ""
        self._only_this_version()
        return name

    def remove(self, names: Iterable[str]) -> None:
        """Pieces that others have taken the place of; who still reads them has them mapped."""
        for name in names:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _forget_old(self, draft: Path) -> None:
        """What a process that died left half-written; a draft that somebody is at work on is younger."""
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > DRAFT_S:
                shutil.rmtree(draft, ignore_errors=True)

    def _only_this_version(self) -> None:
        with suppress(OSError):
            for other in self.folder.parent.iterdir():
                if other.name.rpartition("-")[0] == self.folder.name.rpartition("-")[0] and other != self.folder:
                    shutil.rmtree(other, ignore_errors=True)
