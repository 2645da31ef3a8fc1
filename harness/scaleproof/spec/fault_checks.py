"""Faults that a case cannot have: of ranks that it lacks, or that its strategy, transport or launcher cannot bear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scaleproof.spec import registry
from scaleproof.spec.errors import FieldError
from scaleproof.spec.faults import Fault, Faults, Name, faults_of

if TYPE_CHECKING:
    from scaleproof.spec.case import TrainCase

FIELD = "faults"


def check_faults(case: TrainCase) -> None:
    """Raises FieldError."""
    faults = faults_of(case.faults)
    for fault in faults.of_ranks:
        _rank_fits(case, fault)
    killed = [fault.rank for fault in faults.of_ranks if fault.name != "pause"]
    if len(set(killed)) < len(killed):
        raise FieldError(FIELD, "a rank is killed twice")
    if len(faults.returning) > 1:
        raise FieldError(FIELD, "one rank of a case can have a successor; give the others kill")
    if len(faults.mortal - faults.returning) >= case.workers:
        raise FieldError(FIELD, f"all {case.workers} workers are killed, and none goes on")
    _is_borne(case, faults)


def _rank_fits(case: TrainCase, fault: Fault) -> None:
    servers, steps = case.ranks - case.workers, case.warmup + case.steps
    if fault.rank >= case.ranks:
        raise FieldError(FIELD, f"{fault.name} of rank {fault.rank}, and the last one is {case.ranks - 1}")
    if fault.name != "pause" and fault.rank < servers:
        raise FieldError(FIELD, f"rank {fault.rank} is a server: what it holds would be gone; {fault.name} a worker")
    if fault.moment.step is None:
        return
    if fault.rank < servers:
        raise FieldError(FIELD, f"rank {fault.rank} is a server and has no steps: give s of true time (2.5s)")
    if fault.moment.step >= steps:
        raise FieldError(FIELD, f"{fault.name} at step {fault.moment.step}, and the last one is {steps - 1}")


def _is_borne(case: TrainCase, faults: Faults) -> None:
    """A pause is borne by every strategy, transport and launcher."""
    traits = case.replicas
    for name in sorted(faults.names - {"pause"}):
        if traits is None or name not in traits.bears:
            raise FieldError(FIELD, f"strategy {case.strategy!r} does not bear {name}; use {_strategies(name)}")
    if case.plugin("fabric").predicted or not (deadly := sorted(faults.names & {"kill", "replace"})):
        return
    for name in deadly:
        if name not in case.plugin("transport").bears:
            able = [each for each in registry.names("transport") if name in registry.get("transport", each).bears]
            raise FieldError(FIELD, f"transport {case.transport!r} does not bear {name}; use {' or '.join(able)}")
    if not case.plugin("launcher").outlives_ranks:
        able = registry.with_trait("launcher", "outlives_ranks")
        message = f"launcher {case.launcher!r} ends all ranks when one dies; use {' or '.join(able)}"
        raise FieldError(FIELD, message)
    if case.plugin("fabric").own_kernels:
        raise FieldError(FIELD, f"fabric {case.fabric!r} does not outlive one of its ranks; use host or netns")


def _strategies(name: Name) -> str:
    """Those that bear a fault."""
    programs = {each: registry.get("strategy", each).rank_program for each in registry.names("strategy")}
    return ", ".join(each for each, traits in programs.items() if traits is not None and name in traits.bears)
