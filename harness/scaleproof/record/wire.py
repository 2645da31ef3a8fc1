"""Bytes on the wire beside the bytes asked for: which interface carried what ranks asked their transport to move, from
the counters in a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scaleproof.core.counters import NOTICED, Counters, difference
from scaleproof.core.record_schema import RankNetwork

CARRIES = 0.25
"""Share of the bytes asked from which an interface is said to carry them: an algorithm may send half of what it was
asked, and never this little."""
SHARED_MEMORY_LEAK = 0.01
"""Share of the bytes asked by which interfaces may move, above what they move when idle, while ranks talk through
shared memory."""
SLACK = 1.25
"""Wire bytes per byte sent above which something else shared the interface: headers and acknowledgements take a few
percent."""
PER_MESSAGE = 1024
"""Bytes of headers that a small message may cost on top."""


@dataclass(frozen=True, slots=True)
class Carried:
    """One network namespace over the timed region: what its ranks asked for, and what each of its interfaces sent and
    received (bytes)."""

    namespace: str
    ranks: tuple[int, ...]
    asked_bytes: int
    sent_bytes: dict[str, int]
    received_bytes: dict[str, int] = field(default_factory=dict)

    @property
    def interface(self) -> str:
        """The one that sent most; empty when none sent a byte."""
        busiest = max(self.sent_bytes, key=lambda name: self.sent_bytes[name], default="")
        return busiest if self.sent_bytes.get(busiest) else ""

    @property
    def wire_bytes(self) -> int:
        """What that interface sent."""
        return self.sent_bytes.get(self.interface, 0)

    @property
    def share(self) -> float | None:
        """Bytes on the wire per byte asked; None when nothing was asked."""
        return self.wire_bytes / self.asked_bytes if self.asked_bytes else None


def carried(network: Sequence[RankNetwork]) -> list[Carried]:
    """Per namespace, over the time from its first rank's start to its last rank's end."""
    groups: dict[str, list[RankNetwork]] = {}
    for part in network:
        groups.setdefault(part.namespace, []).append(part)
    found = []
    for name, parts in sorted(groups.items()):
        moved = difference(_first(parts), _last(parts))
        ways = [{interface: counters[way] for interface, counters in moved.items()} for way in ("tx_bytes", "rx_bytes")]
        found.append(Carried(name, tuple(part.rank for part in parts), sum(part.asked_bytes for part in parts), *ways))
    return found


def misled(found: Carried, interface: str) -> str | None:
    """The interface that carried the bytes instead of the requested one; None when the requested one did, when none is
    seen to, or too little was asked."""
    if found.asked_bytes < NOTICED or found.sent_bytes.get(interface, 0) >= CARRIES * found.asked_bytes:
        return None
    return found.interface if found.interface != interface and found.wire_bytes >= CARRIES * found.asked_bytes else None


def unseen(found: Carried, interface: str) -> bool:
    """Whether a socket transport's bytes were seen on no interface at all."""
    return (
        found.asked_bytes >= NOTICED
        and max(found.sent_bytes.get(interface, 0), found.wire_bytes) < CARRIES * found.asked_bytes
    )


def past_the_links(found: Carried, interface: str | None = None) -> int | None:
    """Of a node whose interfaces but loopback (or this one alone) are its links to other nodes: the bytes on all links,
    where they are too few for what its ranks asked; None where they are enough, or too little was asked. Ranks of one
    node may pass the most of it to each other; a read counts for its reader, who receives."""
    links = [name for name in found.sent_bytes if (name == interface if interface else name != "lo")]
    ways = ({name: way.get(name, 0) for name in links} for way in (found.sent_bytes, found.received_bytes))
    moved = max(sum(way.values()) for way in ways)
    return moved if found.asked_bytes >= NOTICED and moved < CARRIES * found.asked_bytes / len(found.ranks) else None


def background(found: Carried, interface: str | None, idle: Mapping[str, float], seconds: float) -> dict[str, int]:
    """Bytes above idle (`idle`: bytes per second) that interfaces other than `interface` sent (None: all of them),
    where they are worth a word."""
    above = {
        name: round(count - idle.get(name, 0.0) * seconds)
        for name, count in found.sent_bytes.items()
        if name != interface
    }
    limit = max(NOTICED if interface is not None else 0, SHARED_MEMORY_LEAK * found.asked_bytes)
    return above if sum(count for count in above.values() if count > 0) > limit else {}


def shared(found: Carried, interface: str, messages: int) -> int:
    """Bytes on the requested interface that cannot be the launch's own, for a transport whose bytes asked are the bytes
    sent; 0 when all can be."""
    own = SLACK * found.asked_bytes + PER_MESSAGE * messages + NOTICED
    return max(round(found.sent_bytes.get(interface, 0) - own), 0)


def _first(parts: Sequence[RankNetwork]) -> Counters:
    return _pick(parts, "before")


def _last(parts: Sequence[RankNetwork]) -> Counters:
    return _pick(parts, "after")


def _pick(parts: Sequence[RankNetwork], when: str) -> Counters:
    """Counters only grow: the earliest reading is the smallest, the latest the largest."""
    choose = min if when == "before" else max
    found: Counters = {}
    for part in parts:
        for name, counters in getattr(part, when).items():
            known = found.get(name, counters)
            found[name] = {key: choose(known[key], value) for key, value in counters.items()}
    return found
