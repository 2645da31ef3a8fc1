"""Records that name plugins which are not installed here. They are read, shown and counted like others, with a
warning."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, TypeAdapter

from scaleproof.core.record_schema import Record
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase
from scaleproof.spec.choice import CHOSEN, nested
from scaleproof.spec.plugins import Kind, Options

READABLE = frozenset((*CHOSEN, "dataset")) - {"fabric"}
"""Kinds of plugin without which a record can be read. The fabric is needed: it says whether times are emulated or
predicted."""


class RecordedOptions(Options):
    """Options of a plugin that is not installed here, as they were recorded."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)


def missing_plugins(case: Mapping[str, Any]) -> list[tuple[Kind, str]]:
    """Kind and name of every plugin of a case that is not installed here. `case`: a name, or a mapping that has one, by
    kind of plugin."""
    named: list[tuple[Kind, Any]] = [(kind, case.get(kind)) for kind in CHOSEN]
    workload = case.get("workload")
    named.append(("dataset", workload.get("data") if isinstance(workload, Mapping) else case.get("dataset")))
    names = [(kind, value.get("name") if isinstance(value, Mapping) else value) for kind, value in named]
    return [(kind, name) for kind, name in names if isinstance(name, str) and name not in registry.names(kind)]


def warning(kind: Kind, name: str) -> str:
    """One line about such a plugin."""
    return (
        f"plugin {name!r} ({kind}) is not installed here: its launches are listed, shown and counted, but have no tags "
        "and cannot be run or predicted; install the package that it is from"
    )


def read_without_plugins(content: bytes) -> Record | None:
    """The record of a case that names plugins which are not installed here. Its options are read as they were recorded,
    since only the plugins could check them. None if no plugin is missing, or one that reading needs."""
    values = json.loads(content)
    case = nested(values["case"])
    missing = missing_plugins(case)
    if not missing or any(kind not in READABLE for kind, _ in missing):
        return None
    fields = ["workload" if kind == "dataset" else kind for kind, _ in missing]
    return Record.model_validate(values | {"case": _checked_alone(case, fields)})


def _checked_alone(values: Mapping[str, Any], missing: Sequence[str]) -> AnyCase:
    """A case whose fields are checked one by one; whether they fit together cannot be checked without the plugins."""
    form: Any = registry.get("program", values["program"]).case
    fields: dict[str, Any] = {}
    for name, field in form.model_fields.items():
        key = field.alias or name
        value = values.get(key)
        if key in missing:
            fields[key] = RecordedOptions.model_validate({"name": value} if isinstance(value, str) else value)
        elif key in values:
            declared: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
            fields[key] = TypeAdapter(declared).validate_python(value)
    case: AnyCase = form.model_construct(**fields)
    return case
