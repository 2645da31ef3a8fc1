"""Which files of the code a case uses: its plugins and everything that they import. A launch stays valid while these
files stay as they are; an edit to another plugin does not touch it."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from scaleproof.core.record_schema import Code
from scaleproof.paths import PACKAGE
from scaleproof.record.digest import code_digest, code_version
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase
from scaleproof.spec.plugins import TransportPlugin

RANK = "scaleproof.rank.run_rank"
SIMULATOR = "scaleproof.simulate.predict"
"""Where a rank and where a prediction begins."""


def used_files(case: AnyCase, programs: str = "") -> dict[str, str]:
    """First 8 hex digits of the SHA-256 of each module that a launch of this case uses, by module name. `programs`:
    folder of the suite's own programs, whose imports count for a case that runs one of them."""
    own = programs if case.program == "own" else ""
    entry = SIMULATOR if case.plugin("fabric").predicted else RANK
    return dict(_hashes(frozenset({entry, *_plugin_modules(case)}), own))


def code_of(case: AnyCase, programs: str = "") -> Code:
    """The code that a launch of this case runs now."""
    return code_version(case.fabric).model_copy(update={"files": used_files(case, programs)})


def is_current(code: Code, fabric: str) -> bool:
    """Whether today's code would run the same: every file that the launch used has the content that it had then. A
    record of an earlier version names no files and needs the whole code unchanged."""
    if not code.files:
        return code.digest == code_digest(fabric)
    return all(content_hash(name) == content for name, content in code.files.items())


def agree(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    """Whether every file that both used had the same content. False where one names no files."""
    return bool(first and second) and all(second.get(name, content) == content for name, content in first.items())


@functools.cache
def content_hash(module: str) -> str:
    """First 8 hex digits of the SHA-256 of a module's source; empty for one that is not here."""
    path = _source(module)
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8] if path else ""


@functools.cache
def _hashes(modules: frozenset[str], programs: str) -> dict[str, str]:
    files = sorted(Path(programs).glob("*.py")) if programs else []
    imported = {name for path in files for name in _imports(path) if name.partition(".")[0] == PACKAGE.name}
    return {name: content_hash(name) for name in sorted(_with_imports(modules | imported))}


def _plugin_modules(case: AnyCase) -> Iterator[str]:
    """Modules that describe the case's plugins, and those that they name as their implementation."""
    for kind, name in case.named():
        if kind == "workload" and name not in registry.names(kind):
            continue  # `predict` asks about a module of the user's own, which no launch runs
        yield registry.module_of(kind, name)
        plugin = registry.get(kind, name)
        mailbox = plugin.mailbox if isinstance(plugin, TransportPlugin) and case.program == "own" else None
        for implementation in (plugin.implementation, mailbox):
            if isinstance(implementation, str):
                yield implementation.partition(":")[0]


def _with_imports(modules: Iterable[str]) -> set[str]:
    """These modules and those that they import, directly or not, of the harness and of their own packages."""
    reached: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        path = None if module in reached else _source(module)
        if path is not None:
            reached.add(module)
            packages = {PACKAGE.name, module.partition(".")[0]}
            waiting += [name for name in _imports(path, module) if name.partition(".")[0] in packages]
    return reached


@functools.cache
def _imports(path: Path, module: str = "") -> tuple[str, ...]:
    """Names that a file imports, anywhere in it but for type checkers only; a name in a module counts as a module,
    since it may be one."""
    names: list[str] = []
    waiting: list[ast.AST] = [ast.parse(path.read_bytes())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parent = _absolute(node, path, module)
            names += [parent, *(f"{parent}.{alias.name}" for alias in node.names)]
    return tuple(names)


def _absolute(node: ast.ImportFrom, path: Path, module: str) -> str:
    if not node.level:
        return node.module or ""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return importlib.util.resolve_name("." * node.level + (node.module or ""), package)


@functools.cache
def _source(module: str) -> Path | None:
    """The file of a module, found without importing it: below the folder of its package."""
    package, *rest = module.split(".")
    for folder in _folders(package):
        files = [folder.joinpath(*rest, "__init__.py")]
        if rest:
            files.append(folder.joinpath(*rest[:-1], f"{rest[-1]}.py"))
        if path := next((path for path in files if path.is_file()), None):
            return path
    return None


@functools.cache
def _folders(package: str) -> tuple[Path, ...]:
    if package in sys.stdlib_module_names:
        return ()
    spec = importlib.util.find_spec(package)
    return tuple(Path(folder) for folder in spec.submodule_search_locations or ()) if spec else ()
