"""A launch whose ranks all ended well: did it measure anything, did its bytes travel where they should, and what
disturbed it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scaleproof.core.record_schema import Failure, FailureCode, PreflightCheck, RankNetwork, Warning
from scaleproof.launch.finish.disturbances import address_warnings, machine_warnings, network_warnings, rank_warnings
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.launch.preflight.experiment_preflight import failed
from scaleproof.launch.watch.failure_signs import Watch
from scaleproof.record.wire import carried, misled, past_the_links
from scaleproof.spec.case import AnyCase
from scaleproof.spec.units import format_bytes

LOOPBACK = "lo"
"""A node's kernel sends through it whatever stays on the node, also to the address of eth0."""
PAST_ADVICE = (
    "the transport reaches other nodes past their links (shared memory, files); "
    "it needs a setting that forbids this, or cannot be emulated so"
)
MOMENTS = (b"start", b"end")
"""Events that mark the timed region; a launch with nothing else has measured nothing."""


def per_rank(watch: Watch, fact: str) -> list[dict[str, Any] | None]:
    """One entry of the facts of every rank, None where it left no report."""
    return [watch.reports[rank]["facts"].get(fact) if rank in watch.reports else None for rank in watch.ranks]


def network_of(watch: Watch) -> list[RankNetwork]:
    """Of the ranks that marked both ends of their timed region."""
    parts = []
    for rank, report in sorted(watch.reports.items()):
        counters, facts = report.get("counters") or {}, report["facts"]
        if {"start", "end"} <= counters.keys():
            asked = facts.get("asked") or {}
            nbytes = (
                asked["end"] - asked["start"]
                if {"start", "end"} <= asked.keys()
                else (facts.get("traffic") or {}).get("nbytes", 0)
            )
            parts.append(
                RankNetwork(
                    rank=rank,
                    namespace=report["namespace"],
                    asked_bytes=nbytes,
                    before=counters["start"],
                    after=counters["end"],
                )
            )
    return parts


def silent_failure(
    case: AnyCase,
    address: str,
    watch: Watch,
    events: Mapping[int, np.ndarray],
    preflight: Sequence[PreflightCheck],
    network: Sequence[RankNetwork],
) -> Failure | None:
    """Nothing measured, a check that failed, another interface than the requested one: reasons to fail that no rank
    saw. `address`: what ranks had to bind."""
    if not any(
        len(rows) and bool(np.any(~rows["warmup"] & ~np.isin(rows["event"], MOMENTS))) for rows in events.values()
    ):
        return _failure("empty_result", "no sample outside the warm-up")
    if (wrong := failed(preflight)) is not None:
        return _failure("preflight", f"{wrong.code}: {wrong.message}", wrong.advice)
    if case.nodes > 1 and not case.plugin("fabric").own_kernels:
        return _past_the_links(case, network) or _wrong_address(case, address, watch)
    if _path(watch) == "shared memory":
        return None
    for part in carried(network):
        carrier = misled(part, case.interface)
        if carrier is not None and not (case.plugin("fabric").makes_nodes and carrier == LOOPBACK):
            moved, requested = part.sent_bytes[carrier], part.sent_bytes.get(case.interface, 0)
            asked = f"of the {format_bytes(part.asked_bytes)} asked"
            by_requested = f"the requested {case.interface!r} {format_bytes(requested)}"
            return _failure(
                "wrong_interface",
                f"{carrier!r} carried {format_bytes(moved)} {asked}, {by_requested}",
            )
    return _wrong_address(case, address, watch)


def disturbances(
    case: AnyCase,
    address: str,
    watch: Watch,
    events: Mapping[int, np.ndarray],
    load: Mapping[str, Any],
    idle: Mapping[str, float],
    network: Sequence[RankNetwork],
    below: bool = True,
) -> list[Warning]:
    """Warnings about what else happened on the machine. `load`: readings before and after; `idle`: bytes a second of
    each interface without us. `below`: see machine_warnings."""
    messages = sum((traffic or {}).get("messages", 0) for traffic in per_rank(watch, "traffic"))
    moments = [int(row["start_ns"]) for rows in events.values() for row in rows[np.isin(rows["event"], MOMENTS)]]
    seconds = (max(moments) - min(moments)) / 1e9 if moments else 0.0
    paces = {rank: pace for rank, pace in enumerate(per_rank(watch, "pace")) if pace}
    around = machine_warnings(load["before"], load["after"], below) if {"before", "after"} <= load.keys() else []
    bound = {
        rank: {
            kind: [other for other in addresses if other != _address(watch, rank, address)]
            for kind, addresses in sockets.items()
        }
        for rank, sockets in enumerate(per_rank(watch, "sockets"))
        if sockets
        and _path(watch) == "socket"
        and not case.plugin("fabric").makes_nodes  # nobody else reaches those nodes, and their links are counted
    }
    of_network = network_warnings(case, network, _path(watch), messages, idle, seconds)
    return [*around, *rank_warnings(paces), *of_network, *address_warnings(bound, address, case.interface)]


def _past_the_links(case: AnyCase, network: Sequence[RankNetwork]) -> Failure | None:
    """Bytes that went from node to node by another way than the links; ranks that share a node need no link."""
    if case.program not in ("train", "collective") and case.ranks > case.nodes:
        return None
    for part in carried(network):
        # A node of an allocation may have other ways than the interface asked for; all links of a node of namespaces
        # are its network.
        if (
            moved := past_the_links(part, case.interface if case.plugin("fabric").evidence == "measured" else None)
        ) is not None:
            node, asked = part.namespace.partition("/")[0], format_bytes(part.asked_bytes)
            links = (
                f"{case.interface!r} of {node}"
                if case.plugin("fabric").evidence == "measured"
                else f"the links of {node}"
            )
            return _failure(
                "wrong_interface",
                f"{links} carried {format_bytes(moved)} of the {asked} asked: bytes took another way",
                PAST_ADVICE,
            )
    return None


def _wrong_address(case: AnyCase, address: str, watch: Watch) -> Failure | None:
    """A transport of sockets none of whose connections is bound to the requested interface's address."""
    for rank, bound in enumerate(per_rank(watch, "sockets")):
        connected = (bound or {}).get("connected", [])
        wanted = _address(watch, rank, address)
        if _path(watch) == "socket" and connected and wanted not in connected:
            return _failure(
                "wrong_interface",
                f"rank {rank}'s connections are bound to {', '.join(connected)}, not to {wanted} of {case.interface!r}",
            )
    return None


def _address(watch: Watch, rank: int, address: str) -> str:
    """What a rank had to bind: its node's address where it stands on one."""
    return str(watch.reports[rank]["facts"].get("address", address)) if rank in watch.reports else address


def _failure(code: FailureCode, message: str, advice: str = "") -> Failure:
    return Failure(code=code, rank=-1, message=message, step=-1, operation="", advice=advice or ADVICE[code])


def _path(watch: Watch) -> str:
    """How the transport says that its bytes travel; empty when no rank reported it."""
    return next((str(transport["path"]) for transport in per_rank(watch, "transport") if transport), "")
