"""One phrase for each way in which a value can be wrong, from pydantic's errors."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from scaleproof.spec.errors import FieldError
from scaleproof.spec.registry import nearest

_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "dict": "a mapping (key: value)",
    "model": "a mapping (key: value)",
    "model_attributes": "a mapping (key: value)",
    "list": "a list",
    "tuple": "a list",
}


def phrase(error: Mapping[str, Any], fields: list[str], options: list[str]) -> str:
    """What is wrong, and the nearest valid thing: `fields` are the keys allowed here, `options` the values of a closed
    choice."""
    kind, value, context = error["type"], error.get("input"), error.get("ctx", {})
    name = str(error["loc"][-1]) if error["loc"] else ""
    if kind == "extra_forbidden":
        return f"unknown key; {nearest(name, fields)}"
    if kind == "missing":
        return "missing"
    if kind == "literal_error":
        return f"unknown value {brief(value)}; {nearest(str(value), options)}"
    if kind in _BOUNDS:
        key, comparison = _BOUNDS[kind]
        return f"{brief(value)} is not allowed; it must be {comparison} {context[key]:g}"
    if kind == "finite_number":
        return f"{brief(value)} is no finite number"
    if kind in ("too_short", "string_too_short"):
        return "empty; give at least one"
    if kind == "value_error":
        return str(context["error"])
    expected = _TYPES.get(kind.rsplit("_", 1)[0]) or ("a whole number" if kind == "int_from_float" else None)
    return (
        f"{brief(value)} is not {expected}"
        if expected
        else f"{brief(value)}: {error['msg'][:1].lower()}{error['msg'][1:]}"
    )


def field_of(error: Mapping[str, Any]) -> str | None:
    """The field that an error over several fields points at."""
    cause = error.get("ctx", {}).get("error")
    return cause.field if isinstance(cause, FieldError) else None


def brief(value: Any) -> str:
    """A value as shown in a message: at most 40 characters."""
    if value is None:
        return "nothing (null)"
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def options_of(model: type[BaseModel], field: str) -> list[str]:
    """The values of a field that is a closed choice; empty for any other."""
    info = model.model_fields.get(field)
    return [str(option) for option in _literals(info.annotation)] if info else []


def _literals(annotation: Any) -> list[Any]:
    if typing.get_origin(annotation) is typing.Literal:
        return list(typing.get_args(annotation))
    return [literal for part in typing.get_args(annotation) for literal in _literals(part)]
