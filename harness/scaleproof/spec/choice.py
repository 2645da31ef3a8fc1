"""A field of a case that names a plugin: `tcp`, or a mapping with the plugin's own options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from scaleproof.spec import registry
from scaleproof.spec.errors import FieldError, SpecError
from scaleproof.spec.messages import brief, options_of, phrase
from scaleproof.spec.plugins import Kind, NameOf, Options

CHOSEN: tuple[Kind, ...] = ("transport", "collective", "fabric", "launcher", "strategy", "workload", "framework")
"""Fields that name a plugin."""


def names_plugin(field: str) -> TypeGuard[Kind]:
    """Whether a field of a case names a plugin."""
    return field in CHOSEN


def choose(kind: Kind, value: Any) -> Options:
    """The options of the plugin that a value names; raises FieldError (the plugin's or the option's) or SpecError with
    the nearest valid name."""
    if isinstance(value, Options):
        return value
    values = _mapping(kind, value)
    if not isinstance(values.get("name"), str):
        raise _no_name(kind, value)
    if (truth := next((name for name, option in values.items() if isinstance(option, bool)), None)) is not None:
        raise FieldError(f"{kind}.{truth}", f"{str(values[truth]).lower()} is neither a number nor a name")
    try:
        plugin = registry.get(kind, values["name"])
    except SpecError as unknown:
        raise FieldError(kind, str(unknown)) from None
    try:
        return _with_known_names(kind, plugin.options.model_validate(values))
    except ValidationError as failed:
        error = failed.errors(include_url=False)[0]
    option = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        raise FieldError(f"{kind}.{option}", _no_such_option(plugin.name, kind, option))
    field = getattr(error.get("ctx", {}).get("error"), "field", None)
    if field is not None:
        raise FieldError(f"{kind}.{field}", str(error["ctx"]["error"]))
    message = phrase(error, list(plugin.options.model_fields), options_of(plugin.options, option))
    raise FieldError(f"{kind}.{option}" if option else kind, message)


def _with_known_names(kind: Kind, options: Options) -> Options:
    """The options; raises FieldError for one that must name a plugin of another kind and does not."""
    for name in options.model_fields_set:
        named = named_kind(type(options).model_fields[name])
        if named is not None:
            try:
                registry.get(named, getattr(options, name))
            except SpecError as unknown:
                raise FieldError(f"{kind}.{name}", str(unknown)) from None
    return options


def named_kind(field: FieldInfo) -> Kind | None:
    """The kind of plugin that an option names; None for any other option."""
    return next((mark.kind for mark in field.metadata if isinstance(mark, NameOf)), None)


def _mapping(field: str, value: Any) -> dict[str, Any]:
    """Options with the name of their plugin, where they have one."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping):
        return dict(value)
    raise _no_name(field, value)


def _no_name(field: str, value: Any) -> FieldError:
    return FieldError(field, f"{brief(value)} is neither a name nor a mapping with one: write NAME, or name: NAME")


def _no_such_option(name: str, kind: Kind, option: str) -> str:
    having = [other.name for other in registry.plugins(kind).values() if option in other.options.model_fields]
    own = [field for field in registry.get(kind, name).options.model_fields if field != "name"]
    advice = f"{', '.join(map(repr, having))} has it" if len(having) == 1 else f"{', '.join(map(repr, having))} have it"
    if not having:
        advice = registry.nearest(option, own) if own else "it has none"
    return f"{kind} {name!r} has no option {option!r}; {advice}"


def short(options: Options | None) -> Any:
    """As written in a suite: the name alone where no option differs from its default."""
    if options is None:
        return None
    values = options.model_dump(mode="json", exclude_defaults=True)
    return options.name if set(values) <= {"name"} else {"name": options.name, **values}


def nested(values: Mapping[str, Any], lenient: bool = False) -> dict[str, Any]:
    """Dotted keys (`strategy.servers: 2`) laid into the mapping of their field. `lenient`: options that the plugin
    named here does not have are left out, and those of a field that names no plugin."""
    result = {key: value for key, value in values.items() if "." not in key}
    for key, value in values.items():
        field, _, option = key.partition(".")
        if not option:
            continue
        chosen = result.get(field)
        if lenient and field in registry.FOLDERS and (chosen is None or not _has(field, chosen, option)):
            continue
        result[field] = _mapping(field, {} if chosen is None else chosen) | {option: value}
    return result


def _has(field: str, chosen: Any, option: str) -> bool:
    name = chosen if isinstance(chosen, str) else chosen["name"]
    return option in registry.get(field, name).options.model_fields  # type: ignore[call-overload, no-any-return]


def dotted(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested options under `KIND.OPTION`: what `nested` takes apart."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and name in (*CHOSEN, "compute"):
            result[name] = value["name"]
            result |= {f"{name}.{key}": chosen for key, chosen in value.items() if key != "name"}
        else:
            result[name] = value
    return result
