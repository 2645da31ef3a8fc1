"""Validity of a launch whose ranks all ended well: whether it measured anything, whether its bytes used the requested
interface, and what disturbed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scaleproof.core.record_schema import Failure, FailureCode, PreflightCheck, RankNetwork, Warning
from scaleproof.launch.finish.disturbances import address_warnings, machine_warnings, network_warnings, rank_warnings
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.launch.finish.surroundings import Surroundings
from scaleproof.launch.preflight.experiment_preflight import failed
from scaleproof.launch.preflight.machine_preflight import BESIDE_OTHERS
from scaleproof.launch.watch.failure_signs import Watch
from scaleproof.record.wire import other_carrier, too_few_link_bytes, traffic_by_namespace
from scaleproof.spec.case import AnyCase
from scaleproof.spec.units import format_bytes

LOOPBACK = "lo"
"""A node's kernel sends everything that stays on the node through it, also to the address of eth0."""
PAST_ADVICE = (
    "the transport reaches other nodes past their links (shared memory, files); "
    "it needs a setting that forbids this, or cannot be emulated so"
)
MOMENTS = (b"start", b"end")
"""Events that mark the timed region; a launch with nothing else has measured nothing."""


def per_rank(watch: Watch, fact: str) -> list[dict[str, Any] | None]:
    """One fact of every rank, None where a rank left no report."""
    return [watch.reports[rank]["facts"].get(fact) if rank in watch.reports else None for rank in watch.ranks]


def network_of(watch: Watch) -> list[RankNetwork]:
    """Counters of the ranks that marked both ends of their timed region."""
    networks = []
    for rank, report in sorted(watch.reports.items()):
        counters = report.get("counters") or {}
        if {"start", "end"} <= counters.keys():
            networks.append(
                RankNetwork(
                    rank=rank,
                    namespace=report["namespace"],
                    asked_bytes=_asked_bytes(report["facts"]),
                    before=counters["start"],
                    after=counters["end"],
                )
            )
    return networks


def _asked_bytes(facts: Mapping[str, Any]) -> int:
    """What a rank asked its transport to move in the timed region; in the whole launch where that is not known."""
    by_moment = facts.get("asked") or {}
    if {"start", "end"} <= by_moment.keys():
        return int(by_moment["end"] - by_moment["start"])
    return int((facts.get("traffic") or {}).get("nbytes", 0))


def silent_failure(
    case: AnyCase,
    address: str,
    watch: Watch,
    events: Mapping[int, np.ndarray],
    preflight: Sequence[PreflightCheck],
    network: Sequence[RankNetwork],
) -> Failure | None:
    """Failures that no rank noticed: nothing measured, a check that failed, another interface than the requested one.
    `address`: what ranks had to bind."""
    if not any(
        len(rows) and bool(np.any(~rows["warmup"] & ~np.isin(rows["event"], MOMENTS))) for rows in events.values()
    ):
        return _failure("empty_result", "no sample outside the warm-up")
    if (check := failed(preflight)) is not None:
        return _failure("preflight", f"{check.code}: {check.message}", check.advice)
    if case.nodes > 1 and not case.plugin("fabric").own_kernels:
        return _past_the_links(case, network) or _wrong_address(case, address, watch)
    if _path(watch) == "shared memory":
        return None
    for part in traffic_by_namespace(network):
        carrier = other_carrier(part, case.interface)
        if carrier is not None and not (case.plugin("fabric").makes_nodes and carrier == LOOPBACK):
            moved, expected = part.sent_bytes[carrier], part.sent_bytes.get(case.interface, 0)
            return _failure(
                "wrong_interface",
                f"{carrier!r} carried {format_bytes(moved)} of the {format_bytes(part.asked_bytes)} asked, "
                f"the requested {case.interface!r} {format_bytes(expected)}",
            )
    return _wrong_address(case, address, watch)


def disturbances(
    case: AnyCase,
    address: str,
    watch: Watch,
    events: Mapping[int, np.ndarray],
    surroundings: Surroundings,
    network: Sequence[RankNetwork],
) -> list[Warning]:
    """Warnings about other work and traffic during the launch. `address`: what ranks had to bind."""
    load = surroundings.load
    messages = sum((traffic or {}).get("messages", 0) for traffic in per_rank(watch, "traffic"))
    moments = [int(row["start_ns"]) for rows in events.values() for row in rows[np.isin(rows["event"], MOMENTS)]]
    seconds = (max(moments) - min(moments)) / 1e9 if moments else 0.0
    paces = {rank: pace for rank, pace in enumerate(per_rank(watch, "pace")) if pace}
    of_machine = []
    if {"before", "after"} <= load.keys():
        # Ranks on other nodes are no processes of this machine, and those of a launch beside this one are no foreign
        # work: all of it would count.
        alone = surroundings.placement is None and BESIDE_OTHERS not in {check.code for check in surroundings.preflight}
        of_machine = machine_warnings(load["before"], load["after"], alone)
    of_network = network_warnings(case, network, _path(watch), messages, surroundings.idle, seconds)
    of_addresses = address_warnings(_other_addresses(case, address, watch), address, case.interface)
    return [*of_machine, *rank_warnings(paces), *of_network, *of_addresses]


def _other_addresses(case: AnyCase, address: str, watch: Watch) -> dict[int, dict[str, list[str]]]:
    """Rank to the addresses of its listening and connected sockets that are not the requested one. Empty on nodes that
    the fabric makes: no other machine reaches them, and their links are counted."""
    if _path(watch) != "socket" or case.plugin("fabric").makes_nodes:
        return {}
    return {
        rank: {
            kind: [other for other in addresses if other != _address(watch, rank, address)]
            for kind, addresses in sockets.items()
        }
        for rank, sockets in enumerate(per_rank(watch, "sockets"))
        if sockets
    }


def _past_the_links(case: AnyCase, network: Sequence[RankNetwork]) -> Failure | None:
    """Bytes that went from node to node without using the links; ranks that share a node need no link."""
    if case.program not in ("train", "collective") and case.ranks > case.nodes:
        return None
    # A node of an allocation may have interfaces besides the requested one; of a node of namespaces all links count.
    measured = case.plugin("fabric").evidence == "measured"
    for part in traffic_by_namespace(network):
        if (moved := too_few_link_bytes(part, case.interface if measured else None)) is not None:
            node, asked_text = part.namespace.partition("/")[0], format_bytes(part.asked_bytes)
            links = f"{case.interface!r} of {node}" if measured else f"the links of {node}"
            return _failure(
                "wrong_interface",
                f"{links} carried {format_bytes(moved)} of the {asked_text} asked: bytes took another way",
                PAST_ADVICE,
            )
    return None


def _wrong_address(case: AnyCase, address: str, watch: Watch) -> Failure | None:
    """A failure where no connection of a socket transport is bound to the requested interface's address."""
    for rank, bound in enumerate(per_rank(watch, "sockets")):
        connected = (bound or {}).get("connected", [])
        expected = _address(watch, rank, address)
        if _path(watch) == "socket" and connected and expected not in connected:
            return _failure(
                "wrong_interface",
                f"rank {rank}'s connections are bound to {', '.join(connected)}, "
                f"not to {expected} of {case.interface!r}",
            )
    return None


def _address(watch: Watch, rank: int, address: str) -> str:
    """The address that a rank had to bind: its node's where it runs on one, else `address`."""
    return str(watch.reports[rank]["facts"].get("address", address)) if rank in watch.reports else address


def _failure(code: FailureCode, message: str, advice: str = "") -> Failure:
    return Failure(code=code, rank=-1, message=message, step=-1, operation="", advice=advice or ADVICE[code])


def _path(watch: Watch) -> str:
    """The path that the transport reports for its bytes; empty when no rank reported one."""
    return next((str(transport["path"]) for transport in per_rank(watch, "transport") if transport), "")
