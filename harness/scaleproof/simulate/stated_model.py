"""The stated costs of a case's transport as a cost model (cost_sheet.py has the form of the files)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scaleproof.simulate.cost_model import CostModel, Gamma, HopModel
from scaleproof.simulate.cost_sheet import Core, Sheet, read_sheet
from scaleproof.simulate.hop_classes import Hop
from scaleproof.simulate.uncertain import Uncertain
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.spec.gpu_node import host_of
from scaleproof.spec.plugins import TransportPlugin

GENERAL = Path(__file__).with_name("stated.yaml")
"""For a transport that states no costs of its own, and for a case that exchanges nothing."""


@dataclass(frozen=True, slots=True)
class _Speed:
    """How much longer software takes on a node's core than on the core that it was fitted on: a factor, and the
    uncertainty that all of the node's costs share."""

    factor: float = 1.0
    unsure: Uncertain | None = None
    assumed: tuple[str, ...] = ()


def stated_model(case: AnyCase, here: bool = False) -> CostModel:
    """Stated costs of the case's transport. `here`: on the machine's own cores, not on those of the case's node type.
    Raises SpecError for a file that is not as it should be."""
    plugin = case.plugin("transport") if case.transport is not None else None
    name = "a library" if plugin is None else plugin.name
    sheet = _sheet(plugin)
    if isinstance(case, TrainCase) and case.plugin("strategy").has_servers:
        sheet = sheet.of_one_run()
    speed = _speed(case, sheet.core) if isinstance(sheet.core, Core) and not here else _Speed()
    between: Hop = "one_link" if "one_link" in sheet.hops else _within(plugin)
    models = {hop: _hop_model(name, hop, sheet, speed) for hop in sheet.hops}
    base = models.pop(between)
    alike = () if plugin is None or plugin.stated_costs else (f"{name} states no costs of its own",)
    return CostModel(
        base.upto_nbytes,
        base.alphas,
        base.betas,
        (Gamma(1, _unscaled(f"gamma by {sheet.gamma.by}", sheet.gamma.s_per_byte)),),
        sheet.goodput,
        f"stated, not measured on this hardware: {sheet.summary}",
        (*alike, *speed.assumed),
        base.card,
        base.processor,
        tuple(models.values()),
        _within(plugin),
        _threads(case, plugin),
        call=_call(name, sheet, speed),
    )


def _call(name: str, sheet: Sheet, speed: _Speed) -> Uncertain:
    """Nothing where no source says it."""
    value, low, high = (number * speed.factor for number in (sheet.call.s if sheet.call else [0.0] * 3))
    return Uncertain(f"time of a call of {name}", value, low, high, speed.unsure)


def one_run_differs(case: AnyCase) -> bool:
    """Whether a case's messages are many of one run, which cost something else than a message alone."""
    if not isinstance(case, TrainCase) or case.transport is None or not case.plugin("strategy").has_servers:
        return False
    return bool(_sheet(case.plugin("transport")).one_run)


def _sheet(plugin: TransportPlugin | None) -> Sheet:
    file = GENERAL if plugin is None or not plugin.stated_costs else _beside(plugin)
    return read_sheet(file, _needed(plugin))


def _threads(case: AnyCase, plugin: TransportPlugin | None) -> int:
    """The threads that a process sends and receives with: no more than its node has cores, where those are known."""
    host = host_of(case.value("compute.profile"))
    wanted = 1 if plugin is None else plugin.message_threads
    return wanted if host is None else min(wanted, host.cores)


def _beside(plugin: TransportPlugin) -> Path:
    """The file of a transport's costs, beside the module that describes it."""
    module = sys.modules[registry.module_of("transport", plugin.name)]
    return Path(str(module.__file__)).with_name(plugin.stated_costs)


def _within(plugin: TransportPlugin | None) -> Hop:
    return "loopback" if plugin is None else plugin.within_node


def _needed(plugin: TransportPlugin | None) -> tuple[Hop, ...]:
    """Classes of hops that a transport's messages can cross."""
    between: tuple[Hop, ...] = () if plugin is not None and plugin.one_node else ("one_link", "several_switches")
    return ("same_process", _within(plugin), *between)


def _speed(case: AnyCase, core: Core) -> _Speed:
    """By the clock of the case's node type, where that is known."""
    profile = case.value("compute.profile")
    host = host_of(profile)
    value, low, high = core.per_clock
    if host is None:
        return _Speed(assumed=(f"software as fast as on the cores that it was fitted on ({core.ghz:g} GHz)",))
    unsure = Uncertain(f"speed of a core of {profile}, clock for clock", 1.0, low / value, high / value)
    return _Speed(core.ghz / host.ghz * value, unsure)


def _hop_model(name: str, hop: Hop, sheet: Sheet, speed: _Speed) -> HopModel:
    def parameter(what: str, place: Hop, values: Sequence[float]) -> Uncertain:
        value, low, high = (number * speed.factor for number in values)
        return Uncertain(f"{what} of {name}, {place.replace('_', ' ')}", value, low, high, speed.unsure)

    def line(cost: str) -> Uncertain:
        values, place = sheet.stated(hop, cost)
        return parameter(cost, place, values)

    def side(cost: str) -> tuple[Uncertain, Uncertain]:
        times, place = sheet.stated(hop, cost)
        return parameter(f"{cost}, a message,", place, times.message), parameter(f"{cost}, a byte,", place, times.byte)

    card = sheet.stated(hop, "card").cost
    return HopModel(
        hop,
        (None,),
        (line("alpha"),),
        (line("beta"),),
        None if card is None else _unscaled("network card and its interrupt", card),
        (*side("send"), *side("receive")),
    )


def _unscaled(name: str, values: Sequence[float]) -> Uncertain:
    value, low, high = values
    return Uncertain(name, value, low, high)
