"""A suite's own program: `programs/<entry>.py` in the suite's folder. Either its function `run(context)`, which every
rank calls, or its class `PROGRAM`, a rank program (rank_programs/), which can be simulated too.

The file may also define `obstacle(case) -> tuple[str, str] | None`, called before anything starts (why the program
cannot run here, and what to do), and `PRELOAD`, names of modules that the ranks' common parent imports before the fork;
where they depend on the case, `preload(case)` returns them.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from scaleproof.core.context import RankContext
from scaleproof.programs.run_program import run_program
from scaleproof.spec.case import OwnCase
from scaleproof.spec.plugins import ProgramPlugin

PACKAGE = "suite_programs"


def run(context: RankContext) -> None:
    """Call the suite's program."""
    case = context.case
    assert isinstance(case, OwnCase)
    module = load_entry(Path(context.programs), case.entry)
    program = getattr(module, "PROGRAM", None)
    if program is None:
        module.run(context)
    else:
        run_program(context, program)


def load_entry(folder: Path, entry: str) -> ModuleType:
    """The module of a program, imported once per process. It can import other modules of its folder as
    `suite_programs.NAME`."""
    package = sys.modules.get(PACKAGE)
    if package is None or list(package.__path__) != [str(folder)]:
        for name in list(sys.modules):
            if name == PACKAGE or name.startswith(f"{PACKAGE}."):  # programs of another suite
                _keep_nothing(sys.modules.pop(name))
        sys.modules[PACKAGE] = package = ModuleType(PACKAGE)
        # Its files are part of the case and not of the code: `importlib.util.find_spec` gives no folder for them.
        package.__spec__ = ModuleSpec(PACKAGE, None, is_package=True)
        package.__path__ = [str(folder)]
    module = importlib.import_module(f"{PACKAGE}.{entry}")
    if caching := sys.modules.get("numba.core.caching"):
        _load_quickly(caching)
    return module


def _load_quickly(caching: ModuleType) -> None:
    """Give what numba compiles of the suite's programs a cache from which it is loaded in less time than from numba's
    own."""
    from scaleproof.core.machine_code import Cache

    for name, module in list(sys.modules.items()):
        if name.startswith(f"{PACKAGE}."):
            for kernel in _kernels(module):
                if type(kernel._cache) is caching.FunctionCache:
                    kernel._cache = Cache(kernel.py_func)


def _keep_nothing(module: ModuleType) -> None:
    """What numba compiles of a module that has lost its name must not be kept: other processes would look for a module
    `<dynamic>`, and fail."""
    if caching := sys.modules.get("numba.core.caching"):
        for kernel in _kernels(module):
            kernel._cache = caching.NullCache()


def _kernels(module: ModuleType) -> Iterator[Any]:
    """What numba compiles of it."""
    return (each for each in vars(module).values() if hasattr(each, "enable_caching"))


def preload_entry(folder: Path, case: OwnCase) -> None:
    """Imports the program and its PRELOAD modules, before the fork."""
    program = load_entry(folder, case.entry)
    for module in program.preload(case) if hasattr(program, "preload") else getattr(program, "PRELOAD", ()):
        importlib.import_module(module)


PLUGIN = ProgramPlugin(
    name="own",
    summary="a suite's own program, from the suite's folder `programs`",
    implementation=run,
    case=OwnCase,
)
