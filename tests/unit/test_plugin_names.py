"""Nothing outside a plugin's own file or folder decides by a plugin's name: traits of its descriptor decide."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from scaleproof.paths import PACKAGE
from scaleproof.spec import registry
from scaleproof.spec.plugins import Kind

KINDS: tuple[Kind, ...] = ("transport", "strategy", "fabric", "launcher", "collective")
# File (or folder) and name, with the reason why a comparison with it stays.
ALLOWED = {
    ("launch/nodes/requested_nodes.py", "local"): "a word of --launcher and its variable, as srun and ssh are",
    ("launch/nodes/start_on_nodes.py", "mpich"): "Allocation.inner: which program starts ranks over several nodes",
    ("launch/nodes/start_ranks.py", "mpich"): "Allocation.inner",
    ("launch/nodes/start_ranks.py", "mpirun"): "Allocation.inner",
}
LEVEL = ("evidence", "level")
"""`simulated` is also a level of evidence: comparisons that name one of these words are about that."""


def plugin_names() -> frozenset[str]:
    return frozenset(name for kind in KINDS for name in registry.names(kind))


def literals(node: ast.AST, constants: Mapping[str, ast.AST]) -> Iterator[str]:
    """Strings that one side of a comparison may equal: a literal, a constant, or a collection of these."""
    if isinstance(node, ast.Name) and node.id in constants:
        yield from literals(constants[node.id], {})
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from (text for element in node.elts for text in literals(element, constants))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "frozenset":
        yield from (text for argument in node.args for text in literals(argument, constants))


def module_constants(tree: ast.Module) -> dict[str, ast.AST]:
    """Values of the upper-case names of a module."""
    constants: dict[str, ast.AST] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs: Iterable[tuple[ast.expr, ast.expr]] = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=True)
            constants |= {name.id: value for name, value in pairs if isinstance(name, ast.Name)}
    return constants


def compared(source: str) -> Iterator[tuple[int, str]]:
    """Line and string of each comparison with a literal string, `match` included."""
    tree = ast.parse(source)
    constants = module_constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and not any(word in ast.unparse(node) for word in LEVEL):
            sides = (node.left, *node.comparators)
            yield from ((node.lineno, text) for side in sides for text in literals(side, constants))
        elif isinstance(node, ast.MatchValue):
            yield from ((node.lineno, text) for text in literals(node.value, constants))


def of_a_plugin(path: Path) -> bool:
    """Whether a file describes a plugin, or lies in the sub-folder of one that does."""
    rooms = [PACKAGE / folder for folder in registry.FOLDERS.values()]
    room = next((room for room in rooms if path.is_relative_to(room)), None)
    if room is None:
        return False
    files = [path] if path.parent == room else sorted(path.parent.glob("*.py"))
    return any(line.startswith("PLUGIN") for file in files for line in file.read_text().splitlines())


def test_nothing_else_decides_by_a_plugins_name() -> None:
    names, used = plugin_names(), set[tuple[str, str]]()
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if of_a_plugin(path):
            continue
        relative = str(path.relative_to(PACKAGE))
        for line, text in compared(path.read_text()):
            if text in names and (relative, text) in ALLOWED:
                used.add((relative, text))
            elif text in names:
                wrong.append(f"{relative}:{line}: compares with {text!r}; ask a trait of the plugin's descriptor")
    assert wrong == []
    assert set(ALLOWED) == used, "comparisons that are gone need no exception"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("case.fabric == 'netns'", ["netns"]),
        ("case.transport in ('tcp', 'shm')", ["tcp", "shm"]),
        ("HOST = 'host'\nwrong = launch.fabric is not HOST", ["host"]),
        ("A, B = 'tcp', 'mpi'\nwrong = B != name", ["mpi"]),
        ("match name:\n    case 'gloo':\n        pass", ["gloo"]),
        ("answer['host'] == home", []),
        ("record.evidence == 'simulated'", []),
        ("case.plugin('fabric').predicted", []),
    ],
)
def test_a_comparison_with_a_name_is_seen(source: str, names: list[str]) -> None:
    assert [text for _, text in compared(source)] == names
