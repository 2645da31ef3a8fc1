"""All plugins by kind and name: those of the harness's own folders, then those of installed packages' entry points.

A folder is listed without importing anything; a plugin's module is imported when its name is asked for, and all modules
of a folder when its names are. A user's package declares `[project.entry-points."scaleproof.transports"]` (or
`strategies`, `collectives`, ...) with `name = "package.module"` or `"package.module:PLUGIN"`.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, overload

from scaleproof.paths import PACKAGE
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plugins import (
    KINDS,
    CollectivePlugin,
    DatasetPlugin,
    FabricPlugin,
    FrameworkPlugin,
    Kind,
    LauncherPlugin,
    Plugin,
    ProgramPlugin,
    StrategyPlugin,
    TransportPlugin,
    WorkloadPlugin,
)

FOLDERS: dict[Kind, str] = {
    "transport": "transports",
    "collective": "collectives",
    "strategy": "strategies",
    "program": "programs",
    "fabric": "fabric",
    "launcher": "launch/launchers",
    "workload": "workloads",
    "dataset": "workloads/datasets",
    "framework": "frameworks",
}
GROUPS: dict[Kind, str] = {
    "transport": "scaleproof.transports",
    "collective": "scaleproof.collectives",
    "strategy": "scaleproof.strategies",
    "program": "scaleproof.programs",
    "fabric": "scaleproof.fabrics",
    "launcher": "scaleproof.launchers",
    "workload": "scaleproof.workloads",
    "dataset": "scaleproof.datasets",
    "framework": "scaleproof.frameworks",
}
"""Entry point group of each kind."""
_MARKS = ("\nPLUGIN = ", "\nPLUGINS = ", "\nPLUGIN: ", "\nPLUGINS: ")


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a registered name can be used on this machine; if not, why and what to do."""

    kind: Kind
    name: str
    available: bool
    summary: str
    why: str = ""
    advice: str = ""


@cache
def plugins(kind: Kind) -> dict[str, Plugin]:
    """Every plugin of a kind by name, the harness's own first. Raises SpecError for a name that two of them have."""
    result: dict[str, Plugin] = {}
    for plugin in (*_own(kind), *_installed(kind)):
        if plugin.name in result:
            raise SpecError(f"two plugins are named {kind} {plugin.name!r}; uninstall one, or rename it")
        result[plugin.name] = _replaced.get((kind, plugin.name), plugin)
    return dict(sorted(result.items()))


def with_trait(kind: Kind, trait: str) -> list[str]:
    """Names of the plugins of a kind whose trait holds, such as `one_sided` of transports."""
    return [name for name, plugin in plugins(kind).items() if getattr(plugin, trait)]


def _own(kind: Kind) -> list[Plugin]:
    """Plugins of the harness's folder: modules that define one, and sub-folders whose modules do."""
    return [plugin for path, _ in _described_files(kind) for plugin in _described(kind, _module_name(path))]


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def _described(kind: Kind, module_name: str, attribute: str = "") -> list[Plugin]:
    module = importlib.import_module(module_name)
    if attribute:
        values = [getattr(module, attribute)]
    else:
        values = [*getattr(module, "PLUGINS", ()), *([module.PLUGIN] if hasattr(module, "PLUGIN") else [])]
    described = [plugin for plugin in values if isinstance(plugin, KINDS[kind])]
    _modules.update({(kind, plugin.name): module_name for plugin in described})
    return described


def _installed(kind: Kind) -> list[Plugin]:
    """Plugins of installed packages; SpecError names the entry point that cannot be read."""
    result: list[Plugin] = []
    for entry_point in importlib.metadata.entry_points(group=GROUPS[kind]):
        try:
            described = _described(kind, entry_point.module, entry_point.attr)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            raise SpecError(f"plugin {entry_point.value!r} of group {GROUPS[kind]} cannot be read: {text}") from error
        if not described:
            raise SpecError(f"plugin {entry_point.value!r} of group {GROUPS[kind]} defines no {KINDS[kind].__name__}")
        result += described
    return result


_replaced: dict[tuple[Kind, str], Plugin] = {}
_modules: dict[tuple[Kind, str], str] = {}
_generation: list[None] = []


def replace(plugin: Plugin) -> None:
    """Stand in for the plugin of this kind and name in this process: for instruments that watch one, and for tests."""
    _replaced[plugin.kind, plugin.name] = plugin
    forget()


def forget() -> None:
    """Read folders and entry points again at the next question; tests install plugins of their own."""
    plugins.cache_clear()
    _single.cache_clear()
    _probed.cache_clear()
    _generation.append(None)


def generation() -> int:
    """How often `forget` was called: what was parsed before may not be valid any more."""
    return len(_generation)


def names(kind: Kind) -> list[str]:
    """Every registered name of a kind."""
    return list(plugins(kind))


def nearest(name: str, candidates: list[str]) -> str:
    """Advice for a misspelt name: the nearest valid one, else all of them."""
    if not candidates:
        return "there is none"
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(candidates)


@overload
def get(kind: Literal["transport"], name: str) -> TransportPlugin: ...
@overload
def get(kind: Literal["collective"], name: str) -> CollectivePlugin: ...
@overload
def get(kind: Literal["strategy"], name: str) -> StrategyPlugin: ...
@overload
def get(kind: Literal["program"], name: str) -> ProgramPlugin: ...
@overload
def get(kind: Literal["fabric"], name: str) -> FabricPlugin: ...
@overload
def get(kind: Literal["launcher"], name: str) -> LauncherPlugin: ...
@overload
def get(kind: Literal["workload"], name: str) -> WorkloadPlugin: ...
@overload
def get(kind: Literal["dataset"], name: str) -> DatasetPlugin: ...
@overload
def get(kind: Literal["framework"], name: str) -> FrameworkPlugin: ...
@overload
def get(kind: Kind, name: str) -> Plugin: ...
def get(kind: Kind, name: str) -> Plugin:
    """The plugin of a name; raises SpecError with the nearest valid name."""
    own = _replaced.get((kind, name)) or _single(kind, name)
    if own is not None:
        return own
    registered = plugins(kind)
    if name not in registered:
        raise SpecError(f"unknown {kind} {name!r}; {nearest(name, list(registered))}")
    return registered[name]


def module_of(kind: Kind, name: str) -> str:
    """The module that describes a plugin; raises SpecError with the nearest valid name."""
    get(kind, name)
    return _modules.get((kind, name), "")


@cache
def _single(kind: Kind, name: str) -> Plugin | None:
    """A plugin of the harness whose file alone is imported, so that reading a case takes no other plugin's time."""
    for path, text in _described_files(kind):
        if f'    name="{name}",' in text:
            matches = [plugin for plugin in _described(kind, _module_name(path)) if plugin.name == name]
            if matches:
                return matches[0]
    return None


@cache
def _described_files(kind: Kind) -> list[tuple[Path, str]]:
    texts = [(path, path.read_text()) for path in sorted((PACKAGE / FOLDERS[kind]).rglob("*.py"))]
    return [(path, text) for path, text in texts if any(mark in text for mark in _MARKS)]


def load(kind: Kind, name: str) -> Any:
    """Import and return what a name stands for (a class, a function or a module)."""
    return get(kind, name).load()


def availability(kind: Kind, name: str, elsewhere: bool = False) -> Availability:
    """Whether the name's libraries are installed here, imported only by a `probe`, and its devices are there
    (`elsewhere`: where it runs has its own)."""
    plugin = get(kind, name)
    missing = [module for module in plugin.requires if importlib.util.find_spec(module) is None]
    if missing:
        why = f"Python package {', '.join(missing)} is not installed"
        return Availability(kind, name, False, plugin.summary, why, plugin.advice)
    if plugin.devices and not elsewhere and not any(Path(plugin.devices).glob("*")):
        advice = (
            "fabric `guests` has soft-RoCE devices; on a machine with a card load its driver (`ibv_devices` lists it)"
        )
        return Availability(kind, name, False, plugin.summary, "no verbs device here", advice)
    if plugin.probe is not None and (why := _probed(kind, name)):
        return Availability(kind, name, False, plugin.summary, why, plugin.advice)
    return Availability(kind, name, True, plugin.summary)


@cache
def _probed(kind: Kind, name: str) -> str:
    probe = get(kind, name).probe
    return probe() if probe else ""


def algorithms() -> list[str]:
    """Names of collectives that are algorithms of ours; `native` stands for a transport's own."""
    return [plugin.name for plugin in plugins("collective").values() if plugin.implementation is not None]
