"""The time of a core that messages take in a simulated case, as fitted on this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scaleproof.simulate.cost_file import Parameter
from scaleproof.simulate.cost_model import CostModel
from scaleproof.simulate.processor_file import ProcessorCost, read_processor
from scaleproof.simulate.stated_model import one_run_differs
from scaleproof.simulate.uncertain import Uncertain
from scaleproof.spec.case import AnyCase

STATED = "the time of a core that a message takes is stated"


def with_fitted_processor(model: CostModel, case: AnyCase, results: Path, machine: str, counts: bool) -> CostModel:
    """A model with the times of cores that `scaleproof fit micro bandwidth` found for the case's transport; as it is
    where there are none with an interval, and where messages of one run take another time than those of windows.
    `counts`: whether the time of a core matters to the case, so that the model says where it comes from."""
    times = read_processor(results, machine)
    alike = [each for each in (times.transports if times else ()) if each.transport == case.transport]
    found = next((each for each in alike if each.buffers == case.buffers and _sure(each)), None)
    if found is None or one_run_differs(case):
        return model.also_assumed(STATED) if counts else model
    processor = _uncertain(found)
    others = tuple(
        other if other.hop == "same_process" else replace(other, processor=processor) for other in model.others
    )
    fitted = replace(model, processor=processor, others=others)
    if counts and case.nodes > 1:
        return fitted.also_assumed("a message between nodes takes as much of a core as one inside this machine")
    return fitted


def _uncertain(found: ProcessorCost) -> tuple[Uncertain, ...]:
    parts = {
        "send, a message,": found.send.message_s,
        "send, a byte,": found.send.byte_s,
        "receive, a message,": found.receive.message_s,
        "receive, a byte,": found.receive.byte_s,
    }
    return tuple(Uncertain(f"{name} of {found.arm}", each.value, each.low, each.high) for name, each in parts.items())


def _sure(found: ProcessorCost) -> bool:
    return all(_has_interval(each) for side in (found.send, found.receive) for each in (side.message_s, side.byte_s))


def _has_interval(parameter: Parameter) -> bool:
    return parameter.low is not None and parameter.high is not None
