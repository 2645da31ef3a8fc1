"""Whether a case can run here at all, answered before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.fabric.host import Host
from harness.programs.own import load_entry
from harness.spec import registry
from harness.spec.case import AnyCase, OwnCase, TrainCase
from harness.spec.errors import SpecError

Obstacle = tuple[str, str]
"""Reason and advice."""


def obstacle(case: AnyCase, programs: str = "") -> Obstacle | None:
    """Why the case is not runnable on this machine; None when nothing is known to stand against it."""
    for kind, name in named(case):
        found = registry.availability(kind, name)
        if not found.available:
            return f"{kind} {name}: {found.why}", found.advice
    if case.launcher == "mpirun" and not (Path(sys.executable).parent / "mpirun").exists():
        return "launcher mpirun: no mpirun beside this Python", "type `make env`"
    try:
        Host(case.interface).address()
    except SpecError as error:
        return str(error), "name one of these interfaces in the case"
    if isinstance(case, OwnCase) and hasattr(program := load_entry(Path(programs), case.entry), "obstacle"):
        found_here: Obstacle | None = program.obstacle(case)
        return found_here
    return None


def named(case: AnyCase) -> list[tuple[registry.Kind, str]]:
    """The registered names that a case uses."""
    names: list[tuple[registry.Kind, str]] = [("program", case.program), ("fabric", case.fabric), ("launcher", case.launcher)]
    if case.transport is not None:
        names.append(("transport", case.transport))
    if isinstance(case, TrainCase):
        names += [("framework", case.framework), ("strategy", case.strategy), ("workload", case.workload)]
    return names
