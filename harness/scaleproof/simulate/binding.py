"""What binds a training's step: the resource whose time, if halved, shortens the step most."""

from __future__ import annotations

from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.halved_resources import halved
from scaleproof.simulate.step_engine import simulate
from scaleproof.spec.case import TrainCase
from scaleproof.spec.cluster import Cluster
from scaleproof.workloads.profile import Profile

STEPS = 4
"""Timed steps that are looked at: without jitter each is like the one before it."""


def binding_resource(case: TrainCase, profile: Profile, cluster: Cluster, costs: MessageCosts) -> str | None:
    """The name of one of RESOURCES in halved_resources.py; None where none of them shortens the step."""
    case = case.model_copy(update={"steps": min(case.steps, STEPS), "warmup": min(case.warmup, STEPS)})
    whole = simulate(case, profile, cluster, costs).step_s
    steps = {name: simulate(*changed).step_s for name, changed in halved(case, profile, cluster, costs).items()}
    shortest = min(steps, key=lambda name: steps[name])
    return shortest if steps[shortest] < whole else None
