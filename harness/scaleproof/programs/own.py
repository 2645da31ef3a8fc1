"""A suite's own program: `run(context)` of `programs/<entry>.py` in the suite's folder, called on every rank.

The file may also hold `obstacle(case) -> tuple[str, str] | None` (why it cannot run here, and what to do; asked before
anything starts) and `PRELOAD`, names of modules that the ranks' common parent imports before the fork.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from scaleproof.core.context import RankContext
from scaleproof.spec.case import OwnCase
from scaleproof.spec.plugins import ProgramPlugin

PACKAGE = "suite_programs"


def run(context: RankContext) -> None:
    """Call the suite's program."""
    case = context.case
    assert isinstance(case, OwnCase)
    load_entry(Path(context.programs), case.entry).run(context)


def load_entry(folder: Path, entry: str) -> ModuleType:
    """The module of a program, imported once per process; its neighbours in the folder can be imported by it as
    `suite_programs.NAME`."""
    package = sys.modules.get(PACKAGE)
    if package is None or list(package.__path__) != [str(folder)]:
        for known in [
            name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")
        ]:  # another suite's
            del sys.modules[known]
        sys.modules[PACKAGE] = package = ModuleType(PACKAGE)
        package.__path__ = [str(folder)]
    return importlib.import_module(f"{PACKAGE}.{entry}")


def preload_entry(folder: Path, entry: str) -> None:
    """Import the program and what it asks for, before the fork."""
    for module in getattr(load_entry(folder, entry), "PRELOAD", ()):
        importlib.import_module(module)


PLUGIN = ProgramPlugin(
    name="own",
    summary="a suite's own program, from the suite's folder `programs`",
    implementation=run,
    case=OwnCase,
)
