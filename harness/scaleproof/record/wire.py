"""Which interface carried the bytes that ranks requested their transport to move: the interface counters of a record
beside the bytes requested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scaleproof.core.counters import NOTICED, Counters, difference
from scaleproof.core.record_schema import RankNetwork

CARRIES = 0.25
"""An interface counts as the carrier if it sent at least this share of the bytes requested: algorithms send at least
half of them."""
SHARED_MEMORY_LEAK = 0.01
"""While ranks use shared memory, interfaces may send this share of the bytes requested, above what they send when
idle."""
SLACK = 1.25
"""With more bytes on the wire per byte sent, something else used the interface too: headers and acknowledgements take a
few percent."""
PER_MESSAGE = 1024
"""Bytes of headers that a small message may need."""


@dataclass(frozen=True, slots=True)
class NamespaceTraffic:
    """One network namespace over the timed region: bytes that its ranks requested, and bytes that each of its
    interfaces sent and received."""

    namespace: str
    ranks: tuple[int, ...]
    asked_bytes: int
    sent_bytes: dict[str, int]
    received_bytes: dict[str, int] = field(default_factory=dict)

    @property
    def interface(self) -> str:
        """The interface that sent most; empty when none sent a byte."""
        busiest = max(self.sent_bytes, key=lambda name: self.sent_bytes[name], default="")
        return busiest if self.sent_bytes.get(busiest) else ""

    @property
    def wire_bytes(self) -> int:
        """Bytes that this interface sent."""
        return self.sent_bytes.get(self.interface, 0)

    @property
    def share(self) -> float | None:
        """Bytes on the wire per byte requested; None when none was requested."""
        return self.wire_bytes / self.asked_bytes if self.asked_bytes else None


def traffic_by_namespace(network: Sequence[RankNetwork]) -> list[NamespaceTraffic]:
    """The traffic of each namespace, from the start of its first rank to the end of its last."""
    groups: dict[str, list[RankNetwork]] = {}
    for part in network:
        groups.setdefault(part.namespace, []).append(part)
    namespaces = []
    for name, parts in sorted(groups.items()):
        moved = difference(_first(parts), _last(parts))
        sent = {interface: counters["tx_bytes"] for interface, counters in moved.items()}
        received = {interface: counters["rx_bytes"] for interface, counters in moved.items()}
        requested = sum(part.asked_bytes for part in parts)
        namespaces.append(NamespaceTraffic(name, tuple(part.rank for part in parts), requested, sent, received))
    return namespaces


def other_carrier(traffic: NamespaceTraffic, interface: str) -> str | None:
    """The interface that carried the bytes instead of the requested one. None if the requested one carried them, if no
    interface did, or if too few bytes were requested to tell."""
    least = CARRIES * traffic.asked_bytes
    if traffic.asked_bytes < NOTICED or traffic.sent_bytes.get(interface, 0) >= least:
        return None
    is_other_carrier = traffic.interface != interface and traffic.wire_bytes >= least
    return traffic.interface if is_other_carrier else None


def is_on_no_interface(traffic: NamespaceTraffic, interface: str) -> bool:
    """Whether no interface carried the bytes of a socket transport."""
    most = max(traffic.sent_bytes.get(interface, 0), traffic.wire_bytes)
    return traffic.asked_bytes >= NOTICED and most < CARRIES * traffic.asked_bytes


def too_few_link_bytes(traffic: NamespaceTraffic, interface: str | None = None) -> int | None:
    """Bytes on a node's links to other nodes if they are too few for what its ranks requested; None if they are enough,
    or if too few bytes were requested to tell.

    The links are `interface`, or all interfaces but loopback. Ranks of one node may pass most bytes to each other, so
    the share of one rank is enough. Sent and received bytes are compared separately: a remote read is requested by the
    rank that receives."""
    links = [interface] if interface else [name for name in traffic.sent_bytes if name != "lo"]
    sent = sum(traffic.sent_bytes.get(name, 0) for name in links)
    received = sum(traffic.received_bytes.get(name, 0) for name in links)
    moved, enough = max(sent, received), CARRIES * traffic.asked_bytes / len(traffic.ranks)
    return moved if traffic.asked_bytes >= NOTICED and moved < enough else None


def traffic_of_others(
    traffic: NamespaceTraffic, interface: str | None, idle: Mapping[str, float], seconds: float
) -> dict[str, int]:
    """Bytes that interfaces other than `interface` (None: all interfaces) sent above what they send when idle (`idle`:
    bytes per second); empty if these are too few to report."""
    above = {
        name: round(count - idle.get(name, 0.0) * seconds)
        for name, count in traffic.sent_bytes.items()
        if name != interface
    }
    limit = max(NOTICED if interface is not None else 0, SHARED_MEMORY_LEAK * traffic.asked_bytes)
    return above if sum(count for count in above.values() if count > 0) > limit else {}


def foreign_bytes(traffic: NamespaceTraffic, interface: str, messages: int) -> int:
    """Bytes on the requested interface that cannot be the launch's own; 0 if all can be. For transports that send
    exactly the bytes requested."""
    own = SLACK * traffic.asked_bytes + PER_MESSAGE * messages + NOTICED
    return max(round(traffic.sent_bytes.get(interface, 0) - own), 0)


def _first(parts: Sequence[RankNetwork]) -> Counters:
    return _pick(parts, "before")


def _last(parts: Sequence[RankNetwork]) -> Counters:
    return _pick(parts, "after")


def _pick(parts: Sequence[RankNetwork], when: str) -> Counters:
    """Counters only grow: the earliest reading is the smallest, the latest the largest."""
    choose = min if when == "before" else max
    chosen: Counters = {}
    for part in parts:
        for name, counters in getattr(part, when).items():
            earlier = chosen.get(name, counters)
            chosen[name] = {key: choose(earlier[key], value) for key, value in counters.items()}
    return chosen
