"""One phrase for each way in which a value can be wrong, from pydantic's errors."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from scaleproof.spec.errors import FieldError, SpecError
from scaleproof.spec.registry import nearest

if TYPE_CHECKING:
    from scaleproof.spec.locate import Document, Key

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


def form_error(document: Document, path: Key, form: type[BaseModel], failed: ValidationError) -> SpecError:
    """The first thing in the file that a form refuses, at its line, with the nearest valid name. `path`: where the
    form's data stand."""
    errors = _without_misspelt(failed.errors(include_url=False))
    located = [(_in_file(document, path, error), error) for error in errors]
    loc, error = min(located, key=lambda entry: document.line((*path, *entry[0])))
    if "[key]" in error["loc"]:
        keys = _literals(_annotation_at(form, error["loc"][:-2]))
        message = f"unknown {str(loc[-2]).removesuffix('s')}; {nearest(str(loc[-1]), [str(key) for key in keys])}"
        return document.error((*path, *loc), message)
    holding = _annotation_at(form, loc[:-1])
    around = next(_forms_in(holding), None) if loc else form
    name = str(loc[-1]) if loc else ""
    fields, options = (list(around.model_fields), options_of(around, name)) if around else ([], [])
    return document.error((*path, *loc), phrase({**error, "loc": loc}, fields, options))


def _without_misspelt(errors: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The errors, but for keys that are missing because they are misspelt: the key that is there is the mistake."""
    unknown: dict[Key, list[str]] = {}
    for error in errors:
        if error["type"] == "extra_forbidden":
            unknown.setdefault(error["loc"][:-1], []).append(str(error["loc"][-1]))

    def misspelt(error: Mapping[str, Any]) -> bool:
        if error["type"] != "missing":
            return False
        return bool(difflib.get_close_matches(error["loc"][-1], unknown.get(error["loc"][:-1], []), cutoff=0.5))

    return [error for error in errors if not misspelt(error)]


def _in_file(document: Document, path: Key, error: Mapping[str, Any]) -> Key:
    """An error's location without what pydantic adds for unions and for keys; with the field that it points at."""
    loc: Key = ()
    for part in (*error["loc"], *filter(None, [field_of(error)])):
        if (*path, *loc, part) in document.lines:
            loc = (*loc, part)
    return (*loc, error["loc"][-1]) if error["type"] == "missing" else loc


def _annotation_at(annotation: Any, loc: Key) -> Any:
    """The type of what stands at a location of a form; None where any data may stand."""
    if not loc:
        return annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(str(loc[0]))
        return _annotation_at(field.annotation, loc[1:]) if field else None
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) in (dict, list, tuple):
        return _annotation_at(next(part for part in reversed(parts) if part is not ...), loc[1:])
    return next((found for part in parts if (found := _annotation_at(part, loc)) is not None), None)


def _forms_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif typing.get_origin(annotation) not in (dict, list, tuple):
        for part in typing.get_args(annotation):
            yield from _forms_in(part)


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
