"""Tables of the fields that users write, from the descriptions in their forms: `scaleproof fields` prints them, and
docs/fields.md has them."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from scaleproof.spec import registry
from scaleproof.spec.case_layers import SET_BY_HARNESS, case_forms
from scaleproof.spec.choice import CHOSEN, named_kind
from scaleproof.spec.common_case import CommonCase
from scaleproof.spec.compute import ComputeOptions
from scaleproof.spec.plugins import Options


class FieldRow(NamedTuple):
    """One field."""

    key: str
    owners: tuple[str, ...]
    """Programs whose cases have the field, or plugins that have the option; empty: all."""
    default: str
    """As a file would say it; empty for a field that must be given."""
    choices: tuple[str, ...]
    """Its values, where they are names of a fixed list."""
    meaning: str


def case_fields() -> list[FieldRow]:
    """Fields of a case that a suite may set, those of every program first."""
    shared = {field.alias or name: field for name, field in CommonCase.model_fields.items()}
    forms = {
        program: {field.alias or name: field for name, field in form.model_fields.items()}
        for program, form in case_forms().items()
    }
    keys = dict.fromkeys([*shared, *(key for fields in forms.values() for key in fields)])
    rows = []
    for key in keys:
        fields = {program: fields[key] for program, fields in forms.items() if key in fields}
        if key == "program":
            rows.append(FieldRow(key, (), "", tuple(forms), shared[key].description or ""))
        elif key not in SET_BY_HARNESS:
            row = _row(key, fields, len(forms))
            rows.append(row._replace(meaning=shared[key].description or "") if key in shared else row)
    return sorted(rows, key=lambda row: bool(row.owners))


def plugin_options() -> list[FieldRow]:
    """Options of plugins as `KIND.OPTION`, and those of the field `compute`."""
    rows = []
    for kind in CHOSEN:
        plugins = registry.plugins(kind)
        names = dict.fromkeys(name for plugin in plugins.values() for name in plugin.options.model_fields)
        for name in (name for name in names if name != "name"):
            fields = {
                plugin.name: plugin.options.model_fields[name]
                for plugin in plugins.values()
                if name in plugin.options.model_fields
            }
            rows.append(_row(f"{kind}.{name}", fields, len(plugins)))
    compute = ComputeOptions.model_fields.items()
    return rows + [_row_of(f"compute.{name}", field)._replace(owners=("train",)) for name, field in compute]


def form_fields(form: type[BaseModel]) -> list[FieldRow]:
    """The fields of a file's form; those of a form inside it follow after a dot, where it is met first."""
    return list(_form_fields(form, "", set()))


def _form_fields(form: type[BaseModel], prefix: str, shown: set[type[BaseModel]]) -> list[FieldRow]:
    shown.add(form)
    rows = []
    for name, field in form.model_fields.items():
        rows.append(_row_of(f"{prefix}{name}", field))
        inner = _inner_form(field.annotation)
        if inner is not None and inner not in shown:
            rows += _form_fields(inner, f"{prefix}{name}.", shown)
    return rows


def _inner_form(annotation: Any) -> type[BaseModel] | None:
    """The form that a field holds, alone, in a list or by name."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_inner_form, get_args(annotation))), None)


def _row_of(key: str, field: FieldInfo) -> FieldRow:
    return FieldRow(key, (), _default(field), _names(field), field.description or "")


def _row(key: str, fields: Mapping[str, FieldInfo], everyone: int) -> FieldRow:
    """Of a field as its owners define it: `fields` by the owner's name."""
    owners_of: dict[str, list[str]] = {}
    for owner, field in fields.items():
        owners_of.setdefault(_default(field), []).append(owner)
    common = max(owners_of, key=lambda text: len(owners_of[text]))
    others = [
        f"{text or 'must be given'} ({', '.join(owners)})" for text, owners in owners_of.items() if text != common
    ]
    first = next(iter(fields.values()))
    return FieldRow(
        key,
        owners=tuple(fields) if len(fields) < everyone else (),
        default="; ".join(filter(None, [common or ("must be given" if others else ""), *others])),
        choices=_names(first),
        meaning=first.description or "",
    )


def _default(field: FieldInfo) -> str:
    """Empty for a field without one."""
    if field.is_required():
        return ""
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Options):
        return value.name
    if isinstance(value, BaseModel) or value in ((), {}, ""):
        return "empty"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _names(field: FieldInfo) -> tuple[str, ...]:
    """The names that a field takes: of a fixed list, or of the plugins of a kind."""
    kind = named_kind(field)
    return _choices(field.annotation) if kind is None else tuple(registry.names(kind))


def _choices(annotation: Any) -> tuple[str, ...]:
    """The names that a field takes; none where it takes anything else than names of a list and null."""
    if get_origin(annotation) is Literal:
        return tuple(str(choice) for choice in get_args(annotation))
    parts = [part for part in get_args(annotation) if part is not type(None)]
    return _choices(parts[0]) if len(parts) == 1 and get_origin(annotation) in (Union, UnionType) else ()
