"""The published forms of Kubernetes' objects, as `kubectl --validate=strict` takes them: a field that a form does not
know is a mistake."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

SCHEMAS = Path(__file__).parents[3] / "profiles" / "kubernetes" / "schemas"


def check(manifest: dict[str, Any], name: str, file: str = "kubernetes.json") -> None:
    """AssertionError that lists every invalid part; `name`: a definition of the schema file, empty for the whole
    file."""
    reference = f"{file}#/$defs/{name}" if name else file
    errors = Draft202012Validator({"$ref": reference}, registry=_registry()).iter_errors(manifest)
    places = [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in errors]
    assert not places, "\n".join(places)


@functools.cache
def _registry() -> Registry:
    forms = {path.name: _strict(json.loads(path.read_text())) for path in SCHEMAS.glob("*.json")}
    return Registry().with_resources([(name, DRAFT202012.create_resource(form)) for name, form in forms.items()])


def _strict(form: Any) -> Any:
    """Forbid unknown fields wherever fields are listed: an operator's schema leaves that to the server, which drops
    unknown ones."""
    if isinstance(form, list):
        return [_strict(part) for part in form]
    if not isinstance(form, dict):
        return form
    closed = {key: _strict(part) for key, part in form.items()}
    if isinstance(form.get("properties"), dict) and form.get("type") == "object":
        closed.setdefault("additionalProperties", form.get("x-kubernetes-preserve-unknown-fields", False))
    return closed
