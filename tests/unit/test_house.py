"""The structure of the package: import directions between rooms, lengths of files and functions, forbidden calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaleproof.spec import registry

ROOT = Path(__file__).parents[2]
HARNESS = ROOT / "harness" / "scaleproof"
# From the lowest room to the highest: a room imports its own and lower ones. `rank` runs the programs, so they
# share a floor.
FLOORS = [
    {"paths"},
    {"spec"},
    {"core"},
    {"stats"},
    {"record"},
    {"fabric"},
    {"packed_trees"},
    {"workloads"},
    {"frontiers"},
    {"frameworks"},
    {"transports"},
    {"remote"},
    {"collectives"},
    {"rank_programs"},
    {"pipelines"},
    {"strategies"},
    {"rank", "programs"},
    {"launch"},
    {"simulate"},
    {"claims"},
    {"calibrate", "compare"},
    {"results"},
    {"report"},
    {"commands", "cli", "doctor", "__main__"},
]
FLOOR = {room: number for number, floor in enumerate(FLOORS) for room in floor}
LONGEST_FILE, LONGEST_FUNCTION, LONGEST_LINE = 320, 56, 120
PYTHON = sorted(
    path for folder in ("harness", "tools", "benchmarks", "suites") for path in (ROOT / folder).rglob("*.py")
)


def room_of(path: Path) -> str:
    return path.relative_to(HARNESS).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[str]:
    """All imported modules of a file, also inside functions and for types only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_name(path: Path) -> str:
    """`scaleproof.stats.bootstrap` of harness/scaleproof/stats/bootstrap.py."""
    return ".".join(path.relative_to(HARNESS.parent).with_suffix("").parts).removesuffix(".__init__")


def problems(path: Path, source: str) -> list[str]:
    """Imports of a harness file that go up."""
    room, upward, tree = room_of(path), [], ast.parse(source)
    for module in imports(tree):
        parts = module.split(".")
        if parts[0] != "scaleproof" or len(parts) < 2 or parts[1] not in FLOOR:
            continue
        if FLOOR[parts[1]] > FLOOR[room]:
            upward.append(f"{path.relative_to(ROOT)}: {room} imports {module}")
    return upward


def harness_files() -> list[Path]:
    return [path for path in PYTHON if path.is_relative_to(HARNESS) and path != HARNESS / "__init__.py"]


def test_every_room_has_its_floor():
    rooms = {path.name for path in HARNESS.iterdir() if path.is_dir() and list(path.glob("*.py"))}
    assert rooms <= set(FLOOR), f"say in FLOORS where these stand: {rooms - set(FLOOR)}"


def test_upper_rooms_import_lower_ones_never_the_reverse():
    assert [line for path in harness_files() for line in problems(path, path.read_text())] == []


@pytest.mark.parametrize(
    ("room", "line", "allowed"),
    [
        ("transports", "from scaleproof.strategies import base", False),
        ("transports", "from scaleproof.core.context import RankContext", True),
        ("transports", "if TYPE_CHECKING:\n    from scaleproof.rank.run_rank import run_rank", False),
        ("strategies", "from scaleproof.collectives import ring", True),
        ("spec", "def f():\n    import scaleproof.launch.supervisor", False),
    ],
)
def test_an_import_that_goes_up_is_seen(room, line, allowed):
    assert bool(problems(HARNESS / room / "new.py", line)) is not allowed


def test_no_two_files_import_each_other():
    modules = {module_name(path): path for path in harness_files()}
    imported = {
        name: {module for module in imports(ast.parse(path.read_text())) if module in modules}
        for name, path in modules.items()
    }
    circles = {
        tuple(sorted((name, other))) for name, others in imported.items() for other in others if name in imported[other]
    }
    assert circles == set()


def test_every_plugin_is_described_in_the_file_or_folder_of_what_it_names():
    for kind in registry.FOLDERS:
        for plugin in registry.plugins(kind).values():
            assert plugin.summary and len(plugin.summary.splitlines()) == 1, f"{kind} {plugin.name}"
            if isinstance(plugin.implementation, str) and ":" in plugin.implementation:
                module = plugin.implementation.partition(":")[0]
                assert (HARNESS.parent / module.replace(".", "/")).with_suffix(".py").exists(), f"{kind} {plugin.name}"


def test_the_snakefile_is_short_and_rules_are_flat():
    assert len((ROOT / "Snakefile").read_text().splitlines()) < 60
    for path in (ROOT / "workflows").glob("*.smk"):
        text = path.read_text()
        assert path.name == "common.smk" or not any(
            line.startswith(("def ", "import ")) for line in text.splitlines()
        ), f"{path.name}: helpers go to common.smk"
        assert len(re.findall(r"^ *log:$", text, re.M)) == len(re.findall(r"^ *(?:use )?rule\b.*:$", text, re.M)), (
            f"{path.name}: every rule has a log"
        )


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_short(path):
    source = path.read_text()
    assert len(source.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            assert node.end_lineno - node.lineno < LONGEST_FUNCTION, f"{node.name}, line {node.lineno}"


def test_no_line_is_long_not_even_one_that_ends_with_a_pragma():
    """Ruff counts the columns of a line without such pragmas."""
    folders = ("harness", "tools", "benchmarks", "suites", "tests", "workflows")
    paths = [path for folder in folders for ending in ("py", "smk") for path in (ROOT / folder).rglob(f"*.{ending}")]
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        if not path.stem.endswith("_pb2")  # generated
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    assert long == []
