"""Whether a case can run here at all, answered before anything starts."""

from __future__ import annotations

from pathlib import Path

from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
from scaleproof.launch.obstacle import Obstacle
from scaleproof.programs.own import load_entry
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, OwnCase


def obstacle(case: AnyCase, programs: str = "", allocated: AllocatedNodes | None = None) -> Obstacle | None:
    """Why the case cannot run on this machine, or on these nodes; None when no obstacle is known."""
    fabric = case.plugin("fabric")
    if fabric.predicted:  # the simulator reports what it lacks itself; a program may need something of this machine
        return _of_program(case, programs)
    for kind, name in case.named():
        available = registry.availability(kind, name, elsewhere=fabric.own_kernels)
        if not available.available:
            return Obstacle(f"{kind} {name}: {available.why}", available.advice, f"{kind} {name}")
    launcher = case.plugin("launcher")
    if launcher.check_installation is not None and (why := launcher.check_installation()):
        return Obstacle(f"launcher {launcher.name}: {why}", launcher.advice, f"launcher {launcher.name}")
    if allocated is not None and not fabric.makes_nodes:
        placement = allocated.placement_for(case)
        hindrance = placement if isinstance(placement, Obstacle) else None
    else:
        hindrance = _of_plugin(fabric.load()(case.interface).obstacle(case), f"fabric {fabric.name}")
    if hindrance is not None:
        return hindrance
    return _of_program(case, programs)


def _of_program(case: AnyCase, programs: str) -> Obstacle | None:
    """What keeps a suite's own program from running here."""
    if (
        programs
        and isinstance(case, OwnCase)
        and hasattr(program := load_entry(Path(programs), case.entry), "obstacle")
    ):
        return _of_plugin(program.obstacle(case), f"program {case.entry}")
    return None


def _of_plugin(reason_and_advice: tuple[str, str] | None, requirement: str) -> Obstacle | None:
    """What a plugin's own `obstacle` returned."""
    return Obstacle(*reason_and_advice[:2], requirement) if reason_and_advice is not None else None
