"""Bytes that network interfaces counted, beside the bytes that a schedule needs: nothing of ours counts them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics_sizes import bus_factor, reduced_nbytes
from scaleproof.core.record_schema import Record
from scaleproof.record.wire import NamespaceTraffic, traffic_by_namespace
from scaleproof.spec.case import CollectiveCase
from scaleproof.spec.emulated import shrunk, true_bytes

LOOPBACK = "lo"


def link_bytes(record: Record) -> dict[int, int] | None:
    """By rank, the bytes that its node's links carried in the timed region, in the direction that carried more. None
    unless every rank has a node, and so interfaces, of its own. Tensors that were shrunk count in full."""
    nodes = traffic_by_namespace(record.network)
    if len(nodes) < 2 or len(nodes) != record.case.ranks:
        return None
    counted = np.array([max(_off_node(node, sent=True), _off_node(node, sent=False)) for node in nodes], np.int64)
    ranks = [node.ranks[0] for node in nodes]
    return dict(zip(ranks, true_bytes(record.case, counted).tolist(), strict=True))


def _off_node(node: NamespaceTraffic, sent: bool) -> int:
    counted = node.sent_bytes if sent else node.received_bytes
    return sum(nbytes for name, nbytes in counted.items() if name != LOOPBACK)


def wire_bytes_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes on the busiest node's links in all all-reduces, over 2V(N-1)/N, the least that an all-reduce of V bytes
    needs.

    ratio = bytes that the interfaces of the busiest node counted / (calls x 2V(N-1)/N)

    The kernel counts the bytes, in /proc/net/dev of each node's network namespace, just before and just after the timed
    region; of sent and received bytes the larger number counts. The calls are all all-reduces in this region: timed,
    warm-up and verified ones, of V bytes each on N ranks. The value exists where each rank has a node, and so an
    interface, of its own (fabrics `netns` and `guests`, real nodes with one rank each).

    Headers are included. TCP over Ethernet adds 66 bytes (Ethernet 14, IP 20, TCP 20, time stamps 12) to each packet of
    at most 1448 bytes, and at most one acknowledgement of 66 bytes goes the other way. That is up to 9.2 % of full
    packets. With a last packet that is not full, messages of 16 KiB have up to 9.8 %, longer ones less. The ratio of an
    algorithm that is optimal in bytes therefore lies between 1 and 1.1. It is close to 1 where the kernel hands several
    packets to the interface as one. Retransmitted packets count.
    [bytes_per_rank_ratio](bytes_per_rank_ratio.md) is the same ratio of the bytes that the transport was asked to send.

    A value below 1 means that bytes took another path.
    """
    case, counted = record.case, link_bytes(record)
    if not isinstance(case, CollectiveCase) or case.operation != "all_reduce" or counted is None:
        return None
    reduced = reduced_nbytes(record, samples)
    return max(counted.values()) / (reduced * bus_factor(case.operation, case.ranks)) if reduced else None


def made_up(wanted: Wanted) -> MadeUp:
    """A launch of one all-reduce, for which each node's interface counted so many times the least."""
    case, nbytes = wanted.case, 1 << 30
    if not isinstance(case, CollectiveCase) or case.operation != "all_reduce" or case.ranks < 2:
        raise ImpossibleValue("only all-reduces have this ratio")
    counted = round(possible(wanted.known) * nbytes * bus_factor(case.operation, case.ranks))
    return MadeUp((Event(case.operation, 0.0, 1.0, nbytes=nbytes),), wire_bytes=shrunk(counted, case.shrink))
