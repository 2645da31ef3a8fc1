"""Fields of a case as a suite file lays them over each other (base, arm, set, sweep), each with the path that it came
from."""

from __future__ import annotations

import difflib
from functools import cache
from typing import Any

from scaleproof.spec import earlier_form, registry
from scaleproof.spec.choice import CHOSEN, names_plugin
from scaleproof.spec.common_case import CommonCase, known_keys
from scaleproof.spec.locate import Document, Key
from scaleproof.spec.plugins import Kind

Origins = dict[str, Key]

SET_BY_HARNESS = ("suite", "experiment", "arm", "source")
NESTED = (*CHOSEN, "compute")
"""Fields that may be a mapping with options of their own."""


def _with_own_options(flat: dict[str, Any]) -> list[str]:
    """The keys, and those of options of a suite's own program as `options.KEY`."""
    options = flat.get("options")
    return [*flat, *(f"options.{key}" for key in options)] if isinstance(options, dict) else list(flat)


class CaseLayers:
    """Fields laid over each other, each with the path it came from and the number of its layer. Options of a plugin are
    held under `KIND.OPTION`."""

    def __init__(self, document: Document) -> None:
        self.document, self.values, self.origins = document, dict[str, Any](), Origins()
        self.layer: dict[str, int] = {}
        self.height = 0

    def over(self, fields: dict[str, Any], path: Key) -> CaseLayers:
        """A copy with these fields on top; raises SpecError for a key that no program and no plugin knows."""
        result = CaseLayers(self.document)
        flat, origins = self._flat(fields, path)
        result.height = self.height + 1
        result.values, result.origins = {**self.values, **self._own_options(flat)}, {**self.origins, **origins}
        result.layer = {**self.layer, **dict.fromkeys(_with_own_options(flat), result.height)}
        return result

    def between(self, fields: dict[str, Any], path: Key, height: int) -> CaseLayers:
        """A copy with these fields above the first `height` layers and below the others."""
        flat, origins = self._flat(fields, path)
        if isinstance(options := flat.get("options"), dict):
            flat["options"] = {key: value for key, value in options.items() if self._is_below(f"options.{key}", height)}
        new = {key: value for key, value in flat.items() if key == "options" or self._is_below(key, height)}
        result = CaseLayers(self.document)
        result.height = self.height
        result.values = {**self.values, **self._own_options(new)}
        result.origins = {**self.origins, **{key: origins[key] for key in new}}
        result.layer = {**self.layer, **dict.fromkeys(_with_own_options(new), height)}
        return result

    def _is_below(self, key: str, height: int) -> bool:
        return self.layer.get(key, 0) <= height

    def _own_options(self, flat: dict[str, Any]) -> dict[str, Any]:
        """Options of a suite's own program go over those of the layer below, unless another program is named."""
        below, above = self.values.get("options"), flat.get("options")
        if "entry" in flat or not (isinstance(below, dict) and isinstance(above, dict)):
            return flat
        return {**flat, "options": {**below, **above}}

    def _flat(self, fields: dict[str, Any], path: Key) -> tuple[dict[str, Any], Origins]:
        """Mappings of a plugin's options as dotted keys, and where each key stands."""
        flat: dict[str, Any] = {}
        origins: Origins = {}
        for name, value in fields.items():
            if name in SET_BY_HARNESS:
                raise self.document.error((*path, name), "set by the harness; leave it out")
            if name in NESTED and isinstance(value, dict):
                self._check_plugin(name, value.get("name"), (*path, name, "name"))
                for option, chosen in value.items():
                    key = name if option == "name" else f"{name}.{option}"
                    flat[key], origins[key] = chosen, (*path, name, option)
            else:
                flat[name], origins[name] = value, (*path, name)
        for key, origin in origins.items():
            self._check_key(key, origin)
        return flat, origins

    def _check_plugin(self, field: str, name: object, path: Key) -> None:
        """Before its options, which nobody else knows."""
        if not names_plugin(field) or not isinstance(name, str):
            return
        names = list(registry.plugins(field))
        if name not in names:
            raise self.document.error(path, f"unknown {field} {name!r}; {registry.nearest(name, names)}")

    def _check_key(self, key: str, path: Key) -> None:
        if key in every_key():
            return
        if advice := earlier_form.advice(key):
            raise self.document.error(path, f"{key!r} {advice}")
        raise self.document.error(path, f"unknown key; {self._nearest(key)}")

    def _nearest(self, key: str) -> str:
        """Advice for a misspelt key, also for an option that was written without its field."""
        keys = self.keys()
        close = difflib.get_close_matches(key, [*keys, *(name.rpartition(".")[2] for name in keys)], n=1, cutoff=0.5)
        full_key = next((name for name in keys if close and name.rpartition(".")[2] == close[0]), None)
        return f"did you mean {full_key or close[0]!r}?" if close else registry.nearest(key, keys)

    def resolved(self) -> dict[str, Any]:
        """Values in which an option that was laid below its plugin's name stays only where that plugin has it."""
        values = dict(self.values)
        for key in self.values:
            field, _, option = key.partition(".")
            if option and names_plugin(field) and self._left_behind(field, option, self.layer[key]):
                del values[key]
        return values

    def _left_behind(self, field: Kind, option: str, layer: int) -> bool:
        if self.layer.get(field, 0) <= layer:
            return False
        name = self.values[field]
        if not isinstance(name, str) or name not in registry.plugins(field):
            return name is None
        return option not in registry.get(field, name).options.model_fields

    def origin(self, field: str, otherwise: Key) -> Key:
        """Where a field, or the plugin whose option it is, was written."""
        return self.origins.get(field) or self.origins.get(field.partition(".")[0], otherwise)

    def keys(self) -> list[str]:
        """The keys that the program here takes, or that any takes while none is named."""
        program = self.values.get("program")
        forms = case_forms()
        chosen = [forms[program]] if isinstance(program, str) and program in forms else list(forms.values())
        return [
            key
            for key in dict.fromkeys(key for form in chosen for key in known_keys(form))
            if key not in SET_BY_HARNESS
        ]


def case_forms() -> dict[str, type[CommonCase]]:
    """The form of every program's cases."""
    return {name: plugin.case for name, plugin in registry.plugins("program").items()}  # type: ignore[attr-defined]


@cache
def every_key() -> frozenset[str]:
    return frozenset(key for form in case_forms().values() for key in known_keys(form))
