"""An archive of the classes that Spark loads (class data sharing of Java). With it each of Spark's processes starts in
about half of the processor time. It lies in the user's cache; Java itself ignores one that does not fit."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from scaleproof.paths import user_cache

KEPT_S = 7 * 24 * 3600.0
"""How long an archive of another Java or Spark is kept after its last use: another clone may use it."""


def archive_of(java: Path, home: Path, version: str, flags: str) -> Path:
    """Where the archive of this Java and this Spark is, or will be. `version`: that of pyspark."""
    of = f"{java.resolve()} {java.resolve().stat().st_mtime_ns} {home} {version} {flags}"
    return user_cache() / "spark" / f"{hashlib.blake2b(of.encode(), digest_size=8).hexdigest()}.jsa"


def class_path(home: Path) -> str:
    """Spark's own launcher gives executors this one, and an archive serves only processes with its class path."""
    first = sorted((home / "jars").glob("slf4j-api-*.jar"))
    return ":".join([f"{home}/conf", *map(str, first), f"{home}/jars/*"])


def tidy(archive: Path) -> None:
    """Marks an archive as used, and removes drafts whose process is gone and archives that nobody has used for long."""
    with suppress(OSError):
        os.utime(archive)
    for path in archive.parent.glob("*.jsa*"):
        writer = path.suffix.removeprefix(".")
        with suppress(OSError):
            gone = writer.isdigit() and not Path(f"/proc/{writer}").exists()
            old = writer == "jsa" and time.time() - path.stat().st_mtime > KEPT_S
            if gone or old:
                path.unlink()


class NewArchive:
    """An archive that a process writes when it ends; it counts once it is whole."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self.draft = archive.with_name(f"{archive.name}.{os.getpid()}")

    @property
    def flag(self) -> str:
        """For the process. OSError where the cache cannot be written."""
        self.archive.parent.mkdir(parents=True, exist_ok=True)
        return f"-XX:ArchiveClassesAtExit={self.draft}"

    def settle(self, ended_well: bool) -> None:
        """After the process has ended."""
        with suppress(OSError):
            if ended_well and self.draft.exists():
                self.draft.replace(self.archive)
            self.draft.unlink(missing_ok=True)
