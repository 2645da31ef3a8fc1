"""What a plugin says of itself: one descriptor in its own file, readable without the library that it needs.

A plugin's module defines `PLUGIN` (or `PLUGINS`, a family in one file). The registry finds it by the folder of its
kind, or by an entry point of a user's own package. Nothing else in the harness knows its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

Kind = Literal[
    "transport", "collective", "strategy", "program", "fabric", "launcher", "workload", "dataset", "framework"
]
Progress = Literal["caller", "background"]
NONE = "n/a"
"""The value of an axis on which a case has no place."""


class Options(BaseModel):
    """A plugin's name with the options that are its own. A plugin with options has a subclass in its file."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: str


@dataclass(frozen=True, slots=True)
class NameOf:
    """Says of an option that its value is the name of a plugin of this kind."""

    kind: Kind


def accepts_any(case: Any) -> None:
    """A plugin that fits every case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """What every kind of plugin has."""

    kind: ClassVar[Kind]
    name: str
    summary: str
    """One line, shown by `scaleproof doctor`."""
    implementation: Any
    """The class or function that the name stands for, or `module:attribute` where importing it needs a library."""
    requires: tuple[str, ...] = ()
    """Python packages without which it does not run; none of them is imported to read this."""
    probe: Callable[[], str] | None = None
    """Says why what is installed does not do, or nothing; may import what is required."""
    check_installation: Callable[[], str] | None = None
    """A second, slower look for `scaleproof doctor`: why it would fail here, or nothing."""
    devices: str = ""
    """A folder of the kernel that has an entry for each device that the plugin needs."""
    advice: str = "type `make env`"
    """What to do where it is not available."""
    options: type[Options] = Options
    check: Callable[[Any], None] = accepts_any
    """Raises FieldError for a case that this plugin does not fit."""
    colour: str = ""
    """Of its curves, a name of the palette in report/figures/style.py; empty: one that is free."""
    marker: str = ""
    """Of its points, as Matplotlib names markers; empty: one that is free."""

    def load(self) -> Any:
        """What the name stands for; raises ImportError where a library is missing."""
        return loaded(self.implementation) if isinstance(self.implementation, str) else self.implementation


def loaded(implementation: str) -> Any:
    """What `module` or `module:name` stands for."""
    module_name, _, attribute = implementation.partition(":")
    module = importlib.import_module(module_name)
    return getattr(module, attribute) if attribute else module
