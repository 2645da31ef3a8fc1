"""Whether a case can run here at all, answered before anything starts."""

from __future__ import annotations

from pathlib import Path

from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
from scaleproof.launch.obstacle import Obstacle
from scaleproof.programs.own import load_entry
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, OwnCase


def obstacle(case: AnyCase, programs: str = "", allocated: AllocatedNodes | None = None) -> Obstacle | None:
    """Why the case cannot run on this machine, or on these nodes; None when nothing is known that prevents it."""
    if case.plugin("fabric").predicted:  # takes nothing of this machine; what a prediction lacks the simulator says
        return None
    fabric = case.plugin("fabric")
    for kind, name in case.named():
        available = registry.availability(kind, name, elsewhere=fabric.own_kernels)
        if not available.available:
            return Obstacle(f"{kind} {name}: {available.why}", available.advice)
    launcher = case.plugin("launcher")
    if launcher.check_installation is not None and (why := launcher.check_installation()):
        return Obstacle(f"launcher {launcher.name}: {why}", launcher.advice)
    if allocated is not None and not fabric.makes_nodes:
        placement = allocated.placement_for(case)
        hindrance: tuple[str, str] | None = placement if isinstance(placement, Obstacle) else None
    else:
        hindrance = fabric.load()(case.interface).obstacle(case)
    if hindrance is not None:
        return Obstacle(*hindrance)
    if isinstance(case, OwnCase) and hasattr(program := load_entry(Path(programs), case.entry), "obstacle"):
        of_program: tuple[str, str] | None = program.obstacle(case)
        return Obstacle(*of_program) if of_program is not None else None
    return None
