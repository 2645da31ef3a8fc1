"""Similar records in compact form: the first one in full, the others as differences from it."""

from __future__ import annotations

from typing import Any

_GONE = "(not there)"


def difference(base: Any, other: Any) -> Any:
    """The difference that turns `base` into `other`: mappings by key, lists of equal length by index, anything else in
    full; empty when they are equal."""
    if isinstance(base, list) and isinstance(other, list) and len(base) == len(other):
        base, other = _numbered(base), _numbered(other)
    if not (isinstance(base, dict) and isinstance(other, dict)):
        return {} if base == other and type(base) is type(other) else {"=": other}
    keys = [*other, *(key for key in base if key not in other)]
    parts = {
        key: {"=": _GONE}
        if key not in other
        else {"=": other[key]}
        if key not in base
        else difference(base[key], other[key])
        for key in keys
    }
    return {key: part for key, part in parts.items() if part}


def merged(base: Any, over: Any) -> Any:
    """`base` with a difference applied."""
    if "=" in over:
        return over["="]
    if not over:
        return base
    if isinstance(base, list):
        return list(merged(_numbered(base), over).values())
    result = {**base, **{key: merged(base.get(key), part) for key, part in over.items()}}
    return {key: value for key, value in result.items() if value != _GONE}


def _numbered(values: list[Any]) -> dict[str, Any]:
    return {str(index): value for index, value in enumerate(values)}
