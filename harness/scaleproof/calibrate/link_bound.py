"""The most payload that links with a set rate pass: the bound of rates over an emulated network."""

from __future__ import annotations

from collections import Counter

from scaleproof.core.record_schema import Record
from scaleproof.spec.cluster import node_name
from scaleproof.spec.link_rates import PAYLOAD, burst, bytes_per_s, least_transmit_s

WHY = (
    f"the rate set on the links, {100 * PAYLOAD:.1f} % of which is payload of TCP, and what a full token bucket passes "
    "at once"
)
LEAST_BURSTS = 2
"""A bound for messages of at least so many token buckets: a full bucket passes at once, so of smaller messages the rate
of the link bounds little."""


def link_rate(record: Record, nbytes: float | None) -> float | str:
    """The most payload in bytes/s that a node's link passes in each direction, in a message that puts `nbytes` on it
    or, without, in the long run; or why there is no such bound. Dilation and shrink are taken back."""
    case, mbit = record.case, _mbit_of_each_link(record)
    if isinstance(mbit, str):
        return mbit
    if nbytes is None:
        return PAYLOAD * bytes_per_s(mbit) * case.dilation * case.shrink
    moved = nbytes / case.shrink
    if moved / PAYLOAD < LEAST_BURSTS * burst(mbit):
        return "much of so small a message passes its link at once, from the token bucket"
    return nbytes * case.dilation / least_transmit_s(moved, mbit)


def _mbit_of_each_link(record: Record) -> float | str:
    """Mbit/s of the one link of every node, as it was built; or why no one rate is the bound."""
    from scaleproof.fabric.netns.veth_links import SHAPED_MBIT  # imports pyroute2, which only these records need

    case, links = record.case, (record.transport.get("fabric") or {}).get("links")
    if not links:
        return "its record names no links"
    if case.nodes != case.ranks:
        return "several ranks share a node and its link"
    nodes = {node_name(number) for number in range(case.nodes)}
    links_of = Counter(end for link in links for end in link["ends"] if end in nodes)
    rates = {link["mbit"] for link in links if nodes & set(link["ends"])}
    if set(links_of.values()) != {1} or len(rates) != 1:
        return "its nodes have several links, or links of different rates"
    rate: float | None = rates.pop()
    if rate is None:
        return "no rate is set on its links"
    return rate if rate < SHAPED_MBIT else "its links are too fast to be shaped"
