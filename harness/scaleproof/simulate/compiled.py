"""Functions of hot loops as machine code, made by numba at the first call and cached beside the file or in the user's
cache, if one of the two is writable. Import this module only where something is simulated: numba takes half a
second."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

Function = TypeVar("Function", bound=Callable[..., object])
_JIT: Any = numba.njit  # its types do not name _nrt, which counts references


def compiled(function: Function) -> Function:
    """A function that makes no arrays. It counts no references to its arguments, which would take longer than the
    small functions of the event engine themselves."""
    return _cached(function, _JIT(error_model="numpy", _nrt=False)(function))


def inlined(function: Function) -> Function:
    """The same for a small function, whose code is put where it is called."""
    return _cached(function, _JIT(error_model="numpy", _nrt=False, forceinline=True)(function))


def allocating(function: Function) -> Function:
    """A function that makes arrays."""
    return _cached(function, numba.njit(error_model="numpy")(function))


def typed(signature: str) -> Callable[[Function], Function]:
    """The same for arguments of stated types, numba's signature: compiled, or loaded from its cache, at once."""

    def now(function: Function) -> Function:
        dispatcher: Any = allocating(function)
        dispatcher.compile(signature)
        dispatcher.disable_compile()
        return cast(Function, dispatcher)

    return now


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


def _cached(function: Function, dispatcher: Any) -> Function:
    with suppress(RuntimeError):  # no folder is writable
        dispatcher._cache = Cache(function)
    return cast(Function, dispatcher)
