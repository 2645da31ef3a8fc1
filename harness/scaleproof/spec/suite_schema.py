"""The JSON Schema of suite.yaml, for editors: the forms, with the fields and options of a case in every mapping of
them."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel

from scaleproof.spec import registry
from scaleproof.spec.case_layers import NESTED, SET_BY_HARNESS, case_forms
from scaleproof.spec.choice import names_plugin
from scaleproof.spec.compute import ComputeOptions
from scaleproof.spec.plugins import Options
from scaleproof.spec.suite_form import SuiteForm

Schema = dict[str, Any]
CASE = {"$ref": "#/$defs/CaseFields"}
SIZE_IN_BYTES = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}
"""1024, or text with a unit: 1 KiB."""


def suite_schema() -> Schema:
    """JSON Schema (draft 2020-12)."""
    schema = SuiteForm.model_json_schema()
    forms = schema["$defs"]
    for form, key in (("ExperimentForm", "base"), ("SizeForm", "set"), ("MatrixForm", "set"), ("TuneForm", "set")):
        meaning = forms[form]["properties"][key]["description"]
        forms[form]["properties"][key] = {**CASE, "description": meaning}
    forms["ExperimentForm"]["properties"]["arms"]["additionalProperties"] = CASE
    forms["CaseFields"] = _case_fields()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _case_fields() -> Schema:
    """A mapping with any of the fields of any program's case, and options as `KIND.OPTION`."""
    variants: dict[str, list[Schema]] = {}
    for form in case_forms().values():
        for name, field in form.model_fields.items():
            key = field.alias or name
            if key in NESTED:
                nullable = type(None) in get_args(field.annotation)
                variants.setdefault(key, []).append(_plugin_field(key, field.description or "", nullable))
            elif key not in SET_BY_HARNESS:
                variants.setdefault(key, []).append(_property(form, key))
    for key in NESTED:
        variants |= {f"{key}.{name}": [schema] for name, schema in _options(key).items()}
    variants["sizes"] = [{**variants["sizes"][0], "items": SIZE_IN_BYTES}]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {key: _any_of(schemas) for key, schemas in variants.items()},
    }


def _property(form: type[BaseModel], key: str) -> Schema:
    schema: Schema = form.model_json_schema()["properties"][key]
    return {name: value for name, value in schema.items() if name not in ("title", "default")}


def _any_of(schemas: list[Schema]) -> Schema:
    unique = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def _options(key: str) -> dict[str, Schema]:
    """The options of all plugins that a field may name. Which plugin has which is left to the harness."""
    plugins = registry.plugins(key).values() if names_plugin(key) else ()
    forms: dict[type[Options], None] = dict.fromkeys([plugin.options for plugin in plugins] or [ComputeOptions])
    variants: dict[str, list[Schema]] = {}
    for form in forms:
        for name in (name for name in form.model_fields if name != "name"):
            variants.setdefault(name, []).append(_property(form, name))
    return {name: _any_of(schemas) for name, schemas in variants.items()}


def _plugin_field(key: str, meaning: str, nullable: bool) -> Schema:
    """A plugin's name, or a mapping of options with or without it: another layer may name the plugin."""
    if names_plugin(key):
        names: list[str] = list(registry.plugins(key))
    else:
        names = list(get_args(ComputeOptions.model_fields["name"].annotation))
    properties = {"name": {"enum": names}, **_options(key)}
    mapping = {"type": "object", "additionalProperties": False, "properties": properties}
    nothing = [{"type": "null"}] if nullable else []
    return {"description": meaning, "anyOf": [{"enum": names}, *nothing, mapping]}
