"""Functions of hot loops as machine code, made by numba at the first call and cached beside the file or in the user's
cache, if one of the two is writable. Import this module only where something is simulated: numba takes half a
second."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba

from scaleproof.core.machine_code import Cache

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


def _cached(function: Function, dispatcher: Any) -> Function:
    with suppress(RuntimeError):  # no folder is writable
        dispatcher._cache = Cache(function)
    return cast(Function, dispatcher)
