"""Whether a case can run here at all, answered before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path

from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
from scaleproof.launch.obstacle import Obstacle
from scaleproof.programs.own import load_entry
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, OwnCase, TrainCase
from scaleproof.spec.cluster import cluster_of, slowed


def obstacle(case: AnyCase, programs: str = "", allocated: AllocatedNodes | None = None) -> Obstacle | None:
    """Why the case is not runnable on this machine, or on these nodes; None when nothing is known to stand against it."""
    if case.fabric == "simulated":
        return (
            None  # it takes no library, device or program of this machine; what a prediction lacks the simulator says
        )
    for kind, name in named(case):
        found = registry.availability(kind, name, elsewhere=case.fabric == "guests")
        if not found.available:
            return Obstacle(f"{kind} {name}: {found.why}", found.advice)
    if case.launcher == "mpirun" and not (Path(sys.executable).parent / "mpirun").exists():
        return Obstacle("launcher mpirun: no mpirun beside this Python", "type `make env`")
    of_kind: dict[str, object] = {"guest": case.guest} if case.fabric == "guests" else {}
    of_kind |= {"cluster": slowed(cluster_of(case), case.dilation, case.shrink)} if case.fabric == "netns" else {}
    if allocated is not None and case.fabric == "host":
        placement = allocated.placement_for(case)
        hindrance: tuple[str, str] | None = placement if isinstance(placement, Obstacle) else None
    else:
        hindrance = registry.load("fabric", case.fabric)(case.interface).obstacle(**of_kind)
    if hindrance is not None:
        return Obstacle(*hindrance)
    if case.fabric == "guests" and case.launcher != "local":
        return Obstacle(
            f"launcher {case.launcher} starts no ranks inside guests", "use launcher `local`, or fabric `host`"
        )
    if isinstance(case, OwnCase) and hasattr(program := load_entry(Path(programs), case.entry), "obstacle"):
        of_program: tuple[str, str] | None = program.obstacle(case)
        return Obstacle(*of_program) if of_program is not None else None
    return None


def named(case: AnyCase) -> list[tuple[registry.Kind, str]]:
    """The registered names that a case uses."""
    names: list[tuple[registry.Kind, str]] = [
        ("program", case.program),
        ("fabric", case.fabric),
        ("launcher", case.launcher),
    ]
    if case.transport is not None:
        names.append(("transport", case.transport))
    if isinstance(case, TrainCase):
        names += [("framework", case.framework), ("strategy", case.strategy), ("workload", case.workload)]
    return names
