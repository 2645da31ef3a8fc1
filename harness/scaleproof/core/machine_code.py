"""Machine code of numba's functions, kept beside their file or in the user's cache. Import this module only where
something is compiled: numba takes a quarter of a second."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys


class Cache(FunctionCache):
    """Of machine code. That of earlier sources is forgotten: numba itself compares only the file of the function, but
    machine code also holds the functions that it calls, which are in other files of the folder. Code that names what is
    gone is forgotten too, where numba would raise."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = _sources(Path(function.__code__.co_filename).parent)

    def load_overload(self, sig: object, target_context: object) -> object:
        """What numba's own method does, without the 240 modules that it imports first: its compiler needs them, machine
        code does not."""
        rtsys.initialize(target_context)
        loaded = None
        try:
            with self._guard_against_spurious_io_errors():
                loaded = self._load_overload(sig, target_context)
        except (AttributeError, ImportError):
            self.flush()
        if loaded is None:
            _say_what_takes_long()
        return loaded


@lru_cache
def _say_what_takes_long() -> None:
    if sys.stderr.isatty():
        print("compiling hot loops, once after an installation; the event engine's take up to 20 s", file=sys.stderr)


@lru_cache
def _sources(folder: Path) -> str:
    """Digest of all sources in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
