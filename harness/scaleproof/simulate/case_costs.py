"""Chooses alpha, beta and gamma of a simulated case: the values fitted on this machine if its transport was fitted
here, otherwise stated values with their ranges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from scaleproof.core.missing_input import MissingInput
from scaleproof.simulate.cost_file import (
    AllReduceCost,
    Costs,
    LineCost,
    Parameter,
    RoundsCost,
    TransportCost,
    read_costs,
)
from scaleproof.simulate.cost_model import CostModel, Gamma, HopModel
from scaleproof.simulate.fitted_processor import with_fitted_processor
from scaleproof.simulate.fitted_tensors import with_fitted_tensors
from scaleproof.simulate.hop_classes import Hop
from scaleproof.simulate.nccl.device_calls import device_model, devices_of
from scaleproof.simulate.program import ASSUMED
from scaleproof.simulate.shared_cores import shared_cores
from scaleproof.simulate.stated_model import stated_model
from scaleproof.simulate.uncertain import Uncertain
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.spec.common_case import NATIVE
from scaleproof.spec.emulated import shrunk
from scaleproof.spec.link_rates import PAYLOAD
from scaleproof.spec.plugins import FabricPlugin
from scaleproof.spec.units import format_bytes
from scaleproof.stats.intervals import smallest_count
from scaleproof.workloads.case_network import network_of


def cost_model(case: AnyCase, results: Path, machine: str) -> CostModel:
    """Costs that a case is simulated with. Calls between GPUs have the model of NCCL. A case that names a node type
    describes other hardware: it gets stated costs, unless its option `costs` says otherwise. All other cases get the
    costs that `scaleproof fit` wrote for this machine. Raises SpecError when the case requires fitted costs and there
    are none."""
    if (devices := devices_of(case)) is not None:
        return device_model(stated_model(case), devices)
    elsewhere = case.value("fabric.costs") == "stated" or (
        case.value("fabric.costs") is None and case.value("compute.profile") is not None
    )
    costs = None if elsewhere or case.transport is None else read_costs(results, machine)
    alike = _alike(case, costs) if costs else []
    fitted = next((sure for fit in alike if (sure := _bounded(fit)) is not None), None)
    lacking = None
    if not elsewhere and fitted is None and case.transport is not None:
        lacking = f"transport {case.transport!r} was " + (
            f"fitted to fewer than {smallest_count()} launches here" if alike else "not fitted on this machine"
        )
    if lacking and case.value("fabric.costs") == "fitted":
        raise MissingInput(lacking, "type `snakemake micro`, or set costs: stated")
    if lacking and (case.dilation != 1 or case.shrink != 1):
        raise MissingInput(
            f"{lacking}, and stated costs are of hardware at full speed with whole tensors",
            "type `snakemake micro`, or leave out dilation and shrink",
        )
    model = stated_model(case) if fitted is None else _fitted(case, fitted, _inside(alike, fitted))
    if fitted is not None and costs is not None and costs.handover_s is not None and _sure(costs.handover_s):
        model = replace(model, handover=_parameter(model.handover.name, costs.handover_s))
    if fitted is not None and case.nodes > 1 and fitted.nodes == 1 and _fabric(fitted).existing_network:
        where = f"{fitted.transport} over {fitted.interface}"
        model = model.also_assumed(
            f"a message between nodes costs what one between two ranks of this machine does ({where})"
        )
    if fitted is not None:
        cores = isinstance(case, TrainCase) and (case.plugin("strategy").has_servers or shared_cores(case) is not None)
        model = with_fitted_processor(model, case, results, machine, cores)
        model = with_fitted_tensors(model, case, results, machine)
    if lacking:
        model = model.also_assumed(f"{lacking} (`scaleproof fit`)")
    if case.collective == NATIVE and case.program in ("train", "collective") and case.transport is not None:
        model = model.also_assumed(f"the collectives of {case.transport!r} run as a {ASSUMED}")
    return _reducing(case, model).also_assumed(*_simplified(case, model))


def _reducing(case: AnyCase, model: CostModel) -> CostModel:
    """With no smaller gamma than that of the rate at which the case's nodes reduce, if it states one."""
    rate = case.value("compute.reduces")
    if rate is None:
        return model
    slowest = Uncertain(f"gamma of {rate:g} GB/s", case.dilation * case.shrink / rate / 1e9)
    faster = all(gamma.value.value <= slowest.value for gamma in model.gammas)
    return replace(model, gammas=(Gamma(1, slowest),)) if faster else model


def arithmetic_byte_s(case: AnyCase, results: Path, machine: str) -> float:
    """What a byte of a rank's own arithmetic takes, s: the gamma of its prediction; stated where costs have to be
    fitted first."""
    try:
        return cost_model(case, results, machine).central().gamma
    except MissingInput:
        return stated_model(case).central().gamma


def _simplified(case: AnyCase, model: CostModel) -> list[str]:
    """Aspects of a case that the simulator simplifies."""
    simplifications = []
    if case.nodes < case.ranks and case.transport is not None:
        own = any(other.hop == model.within_node for other in model.others)
        costs = "their own alpha and beta" if own else "the transport's alpha and beta"
        simplifications.append(f"messages inside a node cost {costs}, no link")
    if isinstance(case, TrainCase) and case.value("strategy.communication", "thread") == "main":
        mover = (
            "the library's own threads move its calls"
            if case.collective == NATIVE
            else "nothing moves before the main thread waits for it"
        )
        simplifications.append(
            f"communication by the main thread: {mover}; what it moves between two layers is left out"
        )
    if case.value("compute.others") is not None and case.transport is not None:
        simplifications.append(f"software is as fast on all nodes as on {case.value('compute.profile')}")
    mechanism = case.value("strategy.mechanism", "messages")
    if isinstance(case, TrainCase) and mechanism != "messages":
        simplifications.append(f"tensors travel as messages, without what mechanism {mechanism!r} copies")
    return simplifications


def _alike(case: AnyCase, costs: Costs) -> list[TransportCost]:
    """Fits of the case's transport and kind of buffers, best match first: fits over links like those of the case, then
    fits over links without a limit."""
    of_transport = [
        fit
        for fit in costs.transports
        if (fit.transport, fit.buffers) == (case.transport, case.buffers) and (fit.transfer or fit.all_reduces)
    ]
    same = [
        fit
        for fit in of_transport
        if case.value("fabric.cluster") is None
        and (fit.link_mbit, fit.link_delay_ms)
        == (case.value("fabric.link_mbit"), case.value("fabric.link_delay_ms", 0.0))
    ]
    free = [fit for fit in of_transport if fit.link_mbit is None and not fit.link_delay_ms]
    emulated = [fit for fit in (*same, *free) if _fabric(fit).makes_nodes and _fabric(fit).slows_links]
    return [*emulated, *free]


def _fabric(fit: TransportCost) -> FabricPlugin:
    """The fabric that the transport was measured on."""
    return registry.get("fabric", fit.fabric)


def _inside(alike: list[TransportCost], chosen: TransportCost) -> TransportCost | None:
    """The fit of messages between two ranks of a node, where the chosen one is of messages between nodes."""
    if chosen.nodes == 1:
        return None
    within = [fit for fit in alike if fit.nodes == 1 and fit.transfer is not None]
    return next((sure for fit in within if (sure := _bounded(fit)) is not None), None)


def _bounded(fit: TransportCost) -> TransportCost | None:
    """The parts of a fit that have intervals; None when its messages have none, since their error is unknown then."""
    reduces = tuple(
        reduce.model_copy(update={"rounds": reduce.rounds if reduce.rounds and _rounds_sure(reduce.rounds) else None})
        for reduce in fit.all_reduces
    )
    if fit.transfer is None:
        reduces = tuple(reduce for reduce in reduces if _line_sure(reduce.call))
    elif not _line_sure(fit.transfer):
        return None
    return fit.model_copy(update={"all_reduces": reduces}) if fit.transfer or reduces else None


def _line_sure(line: LineCost) -> bool:
    return all(_sure(segment.alpha_s, segment.beta_s_per_byte) for segment in line.segments)


def _rounds_sure(rounds: RoundsCost) -> bool:
    return _sure(rounds.call_s, *(each.s_per_byte for each in rounds.gammas))


def _sure(*parameters: Parameter) -> bool:
    return all(parameter.low is not None and parameter.high is not None for parameter in parameters)


def _fitted(case: AnyCase, fit: TransportCost, inside: TransportCost | None) -> CostModel:
    """The cost model of a fit; `inside`: that of messages inside a node. The delay of a delayed link is subtracted,
    because the simulated link adds it."""
    source = (
        f"fitted on this machine: {fit.transport} over fabric {fit.fabric}, interface {fit.interface}, {fit.evidence}"
    )
    split = [part for part in fit.all_reduces if part.rounds] or fit.all_reduces
    reduces = min(split, key=lambda part: max(part.ranks, case.ranks) / min(part.ranks, case.ranks), default=None)
    name = f"{fit.arm}/{fit.fabric}"
    if fit.transfer is None:
        assert reduces is not None
        return _from_calls(name, source, reduces)
    stated = stated_model(case, here=True)
    between = _line(name, fit.transfer, "one_link", fit.link_delay_ms / 1e3)
    rounds = reduces.rounds if reduces is not None else None
    return CostModel(
        upto_nbytes=between.upto_nbytes,
        alphas=between.alphas,
        betas=between.betas,
        gammas=_gammas(name, reduces.ranks, rounds) if reduces and rounds else stated.gammas,
        footprint=footprint(case),
        goodput=PAYLOAD,
        source=source,
        assumed=() if rounds else ("gamma is stated, no all-reduce gave one with an interval",),
        processor=stated.processor,
        others=_others(stated, inside),
        within_node=stated.within_node,
        threads=stated.threads,
        call=_parameter(f"time of a call of {name}", rounds.call_s) if rounds else stated.call,
    )


def footprint(case: AnyCase) -> int:
    """Bytes that the ranks of a training go through in a step: its gradients, of all ranks, as all are on one machine
    where costs are fitted. 0 for other programs, whose calls have sizes of their own."""
    if not isinstance(case, TrainCase):
        return 0
    return case.ranks * shrunk(network_of(case).parameters * np.dtype(np.float32).itemsize, case.shrink)


def _gammas(name: str, ranks: int, rounds: RoundsCost) -> tuple[Gamma, ...]:
    """By the bytes that the arrays of all ranks take, which share the caches of the machine."""
    return tuple(
        Gamma(ranks * part.nbytes, _parameter(f"gamma at {format_bytes(part.nbytes)} of {name}", part.s_per_byte))
        for part in rounds.gammas
    )


def _others(stated: CostModel, inside: TransportCost | None) -> tuple[HopModel, ...]:
    """The classes of hops on which a fit is not used: inside a node, where that was fitted too."""
    if inside is None or inside.transfer is None:
        return ()
    line = _line(f"{inside.arm}/{inside.fabric}", inside.transfer, stated.within_node)
    own = next((other.processor for other in stated.others if other.hop == line.hop), stated.processor)
    return (replace(line, processor=own),)


def _line(name: str, line: LineCost, hop: Hop, delay_s: float = 0.0) -> HopModel:
    return HopModel(
        hop,
        tuple(part.upto_nbytes for part in line.segments),
        tuple(
            _parameter(f"alpha {number} of {name}", _without(part.alpha_s, delay_s))
            for number, part in enumerate(line.segments)
        ),
        tuple(
            _parameter(f"beta {number} of {name}", part.beta_s_per_byte) for number, part in enumerate(line.segments)
        ),
    )


def _from_calls(name: str, source: str, reduces: AllReduceCost) -> CostModel:
    """The cost model of a transport without point-to-point messages: what each message of a ring must cost, reduction
    included, so that whole calls take as long as measured."""
    rounds = 2 * (reduces.ranks - 1)
    segments = reduces.call.segments

    def share(parameter: Parameter, factor: float) -> Parameter:
        return Parameter(
            value=parameter.value * factor,
            low=None if parameter.low is None else parameter.low * factor,
            high=None if parameter.high is None else parameter.high * factor,
        )

    return CostModel(
        upto_nbytes=tuple(
            None if segment.upto_nbytes is None else segment.upto_nbytes // reduces.ranks for segment in segments
        ),
        alphas=tuple(
            _parameter(f"alpha {number} of {name}", share(segment.alpha_s, 1 / rounds))
            for number, segment in enumerate(segments)
        ),
        betas=tuple(
            _parameter(f"beta {number} of {name}", share(segment.beta_s_per_byte, reduces.ranks / rounds))
            for number, segment in enumerate(segments)
        ),
        gammas=(Gamma(1, Uncertain(f"gamma of {name}", 0.0)),),
        goodput=PAYLOAD,
        source=source,
        assumed=("alpha and beta are those of whole calls, as a ring would need them",),
    )


def _without(parameter: Parameter, seconds: float) -> Parameter:
    value, low, high = (
        None if bound is None else max(bound - seconds, 0.0)
        for bound in (parameter.value, parameter.low, parameter.high)
    )
    assert value is not None
    return Parameter(value=value, low=low, high=high) if seconds else parameter


def _parameter(name: str, parameter: Parameter) -> Uncertain:
    return Uncertain(name, parameter.value, parameter.low, parameter.high)
