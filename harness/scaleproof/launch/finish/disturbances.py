"""Warnings about what disturbed a launch: other work, a hypervisor, heat, a quota, a lower clock frequency, foreign
traffic. Its numbers are kept, with the warning beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scaleproof.core.evidence_marks import LINK
from scaleproof.core.record_schema import RankNetwork, Warning
from scaleproof.record.machine_load import HZ
from scaleproof.record.wire import (
    NamespaceTraffic,
    foreign_bytes,
    is_on_no_interface,
    traffic_by_namespace,
    traffic_of_others,
)
from scaleproof.spec.case import AnyCase
from scaleproof.spec.units import format_bytes

STEAL = 0.02
"""Share of the machine's processor time that a hypervisor may take."""
FOREIGN = 0.10
"""Share of the machine's processor time that processes other than the launch's may take."""
SLOWER = 0.90
"""Share of its clock at the start of the timed region that a core must still have at the end."""
FURTHER, NEAR_MS = 1.25, 1.0
"""What a link of guests may add to its configured delay: a factor, and ms for the way through two kernels."""
RATE_HELD = 0.8
"""Share of its configured rate that a link of guests must reach."""
SHORT_S = 0.3
"""Below this the kernel's ticks are too coarse for shares."""


def machine_warnings(before: Mapping[str, Any], after: Mapping[str, Any], alone: bool = True) -> list[Warning]:
    """From readings of `read_machine_load` before and after the launch. `alone`: whether the ranks run here and no
    other launch may run beside them, so that all other work on this machine is foreign."""
    warnings = list[Warning]()
    ticks = after.get("ticks", 0) - before.get("ticks", 0)
    if ticks > SHORT_S * HZ:
        steal = ((after["steal_ticks"] or 0) - (before["steal_ticks"] or 0)) / ticks
        if steal > STEAL:
            message = f"a hypervisor took {steal:.1%} of the processor time"
            warnings.append(_warning("stolen", message, "run on a host of your own, or compare only within a block"))
        busy = (
            ticks
            - (after["idle_ticks"] - before["idle_ticks"])
            - ((after["steal_ticks"] or 0) - (before["steal_ticks"] or 0))
        )
        foreign = (busy - HZ * (after["own_cpu_s"] - before["own_cpu_s"])) / ticks
        if alone and foreign > FOREIGN:
            warnings.append(
                _warning(
                    "contended",
                    f"other processes took {foreign:.0%} of the processor time",
                    "end what else runs here and launch again",
                )
            )
    heat = (after.get("thermal_throttles") or 0) - (before.get("thermal_throttles") or 0)
    if heat > 0:
        hottest = f"hottest sensor {after.get('temperature_c')} degrees Celsius"
        message = f"the processor slowed itself down {heat} times because of heat ({hottest})"
        warnings.append(_warning("throttled", message, "cool the machine, or let it rest between launches"))
    return warnings


def rank_warnings(paces: Mapping[int, Mapping[str, Any]]) -> list[Warning]:
    """From each rank's readings at the start and the end of its timed region."""
    slower, waited = [], []
    for rank, pace in sorted(paces.items()):
        start, end = pace.get("start") or {}, pace.get("end") or {}
        if start.get("mhz") and end.get("mhz") and end["mhz"] < SLOWER * start["mhz"]:
            slower.append(f"rank {rank} from {start['mhz']:.0f} to {end['mhz']:.0f} MHz")
        if start.get("throttled") and end.get("throttled") and end["throttled"]["us"] > start["throttled"]["us"]:
            waited.append(f"rank {rank} for {(end['throttled']['us'] - start['throttled']['us']) / 1e6:.3f} s")
    warnings = list[Warning]()
    if slower:
        message = f"cores slowed down: {', '.join(slower)}"
        warnings.append(
            _warning("frequency_dropped", message, "fix the frequency (governor `performance`), or warm up for longer")
        )
    if waited:
        message = f"the control group's processor quota was used up: {', '.join(waited)}"
        warnings.append(_warning("throttled", message, "raise cpu.max of the container, or use fewer ranks or threads"))
    return warnings


def network_warnings(
    case: AnyCase, network: Sequence[RankNetwork], path: str, messages: int, idle: Mapping[str, float], seconds: float
) -> list[Warning]:
    """Foreign traffic, and traffic of the launch that no interface counted. `path`: the transport's; `idle`: bytes per
    second of each interface before the experiment; `seconds`: length of the timed region."""
    return [
        warning
        for part in traffic_by_namespace(network)
        for warning in _of_namespace(case, part, path, messages, idle, seconds)
    ]


def address_warnings(bound: Mapping[int, Mapping[str, Sequence[str]]], address: str, interface: str) -> list[Warning]:
    """Sockets that a transport opened elsewhere than on the requested interface's address. `bound`: rank to its
    `listening` and `connected` addresses."""
    warnings = list[Warning]()
    for kind, advice in (
        ("listening", "others can reach it there"),
        ("connected", "bytes may travel there; the library does not use the interface it was given"),
    ):
        others = sorted({other for sockets in bound.values() for other in sockets.get(kind, ()) if other != address})
        if others:
            message = f"sockets of ranks are {kind} on {', '.join(others)} too, beside {address} of {interface!r}"
            warnings.append(_warning("other_address", message, f"{advice}: see the table of docs/preflight.md"))
    return warnings


def link_warnings(network: Mapping[str, Any] | None) -> list[Warning]:
    """Links of guests that miss their configured rate or delay. `network`: the coordinator's report; None: there is
    none."""
    misses = []
    network = network or {}
    for node, measured in enumerate(network.get("found", [])):
        common = (
            {"set_rtt_ms": 2 * network["link_delay_ms"], "set_mbit": network["link_mbit"]}
            if "link_delay_ms" in network
            else {}
        )
        figures = common | (measured or {})
        set_ms, set_mbit, rtt_ms, mbit = (figures.get(name) for name in ("set_rtt_ms", "set_mbit", "rtt_ms", "mbit"))
        if "rtt_ms" in figures and rtt_ms is None:
            misses.append(f"node {node} no answer from the next node")
        if rtt_ms is not None and set_ms is not None and not set_ms <= rtt_ms <= set_ms * FURTHER + NEAR_MS:
            misses.append(f"node {node} round trip {rtt_ms:g} ms, {set_ms:g} set")
        if set_mbit and "mbit" in figures and mbit is None:
            misses.append(f"node {node} no rate at all, {set_mbit:g} Mbit/s set")
        if set_mbit and mbit is not None and not RATE_HELD <= mbit / set_mbit <= 1 / RATE_HELD:
            misses.append(f"node {node} {mbit:g} Mbit/s, {set_mbit:g} set")
    advice = "end what else runs here, set a lower rate, or use the measured values of the record as the link's"
    return [_warning(LINK, f"before the ranks started links gave: {'; '.join(misses)}", advice)] if misses else []


def _of_namespace(
    case: AnyCase, part: NamespaceTraffic, path: str, messages: int, idle: Mapping[str, float], seconds: float
) -> list[Warning]:
    asked_text = format_bytes(part.asked_bytes)
    if path == "shared memory":
        leak = traffic_of_others(part, None, idle, seconds) if part.asked_bytes else {}
        message = f"interfaces sent {_listed(leak)} above idle while ranks asked shared memory for {asked_text}"
        advice = "find out what else uses the network; more than 1 % of the bytes asked is not noise"
        return [_warning("interfaces_moved", message, advice)] if leak else []
    warnings = list[Warning]()
    if path == "socket" and is_on_no_interface(part, case.interface):
        sent = format_bytes(part.sent_bytes.get(case.interface, 0))
        message = f"no interface carried the {asked_text} asked; {case.interface!r} sent {sent}"
        warnings.append(
            _warning(
                "unseen_traffic",
                message,
                "the library may use shared memory between ranks of one machine; look at its settings",
            )
        )
    others = traffic_of_others(part, case.interface, idle, seconds)
    fabric = case.plugin("fabric")
    if fabric.makes_nodes:  # bytes that stay on a node go through its loopback; its other interfaces are its links
        others = {name: count for name, count in others.items() if name != "lo"} if fabric.own_kernels else {}
    elif case.nodes > 1:
        others.pop("lo", None)  # ranks of one node reach each other through it, whatever address they bind
    if others:
        message = f"meanwhile other interfaces sent {_listed(others)} above idle"
        warnings.append(
            _warning("contended_network", message, "other traffic shared the machine; run again when it is quiet")
        )
    sends = case.transport is not None and case.plugin("transport").point_to_point
    if path == "socket" and sends and (extra := foreign_bytes(part, case.interface, messages)):
        message = f"{case.interface!r} sent {format_bytes(extra)} more than the launch can have"
        warnings.append(
            _warning("contended_network", message, "other traffic used the same interface; run again when it is quiet")
        )
    return warnings


def _listed(moved: Mapping[str, int]) -> str:
    return ", ".join(f"{format_bytes(count)} on {name}" for name, count in sorted(moved.items()) if count > 0)


def _warning(code: str, message: str, advice: str) -> Warning:
    return Warning(code=code, message=message, advice=advice)
