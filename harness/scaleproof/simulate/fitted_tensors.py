"""What parameter servers take for a tensor in a simulated case, as fitted on this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scaleproof.simulate.cost_model import CostModel
from scaleproof.simulate.tensor_file import SERVERS, TensorCost, read_tensors
from scaleproof.simulate.uncertain import Uncertain
from scaleproof.spec.case import AnyCase, TrainCase

FREE = "servers and their workers take no time for a tensor beside its messages"


def with_fitted_tensors(model: CostModel, case: AnyCase, results: Path, machine: str) -> CostModel:
    """A model with the times of tensors that `scaleproof fit micro tensors` found for the case's transport; without
    them where there are none with an interval, which the model says."""
    if not isinstance(case, TrainCase) or case.strategy != SERVERS:
        return model
    times = read_tensors(results, machine)
    alike = [each for each in (times.transports if times else ()) if each.transport == case.transport]
    found = next((tensors for each in alike if (tensors := _uncertain(each))), None)
    return model.also_assumed(FREE) if found is None else replace(model, tensors=found)


def _uncertain(cost: TensorCost) -> tuple[Uncertain, ...]:
    """In the order of cost_model.TensorTimes; none without intervals."""
    parts = {"hand over": cost.push_s, "begin": cost.begin_s, "serve": cost.serve_s}
    if any(each.low is None for each in parts.values()):
        return ()
    return tuple(
        Uncertain(f"{name} a tensor of {cost.arm}", each.value, each.low, each.high) for name, each in parts.items()
    )
