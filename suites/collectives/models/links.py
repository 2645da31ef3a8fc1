"""Payload that the interfaces of nodes carried, by their own counters of bytes and packets."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_sizes import bus_factor
from scaleproof.core.counters import difference
from scaleproof.core.record_schema import RankNetwork, Record

LOOPBACK = "lo"
HEADERS = 66
"""Bytes of a packet that are no payload: Ethernet 14, IP 20, TCP 20, its time stamps 12."""
ARRAYS = 1 << 30
"""Bytes of a made-up launch's array."""


def payload(part: RankNetwork) -> int:
    """Bytes of TCP payload that a rank's node sent or received, whichever is more."""
    counted = [counters for name, counters in difference(part.before, part.after).items() if name != LOOPBACK]
    return max(
        sum(each.get(f"{way}_bytes", 0) - HEADERS * each.get(f"{way}_packets", 0) for each in counted)
        for way in ("tx", "rx")
    )


def busiest(record: Record) -> int | None:
    """The payload of the busiest rank's node; None unless every rank has a node of its own."""
    nodes = {part.namespace for part in record.network}
    alone = len(nodes) == len(record.network) == record.case.ranks
    return max(map(payload, record.network)) if alone else None


def reduced_nbytes(record: Record, samples: pd.DataFrame) -> int:
    """Bytes of the arrays of all all-reduces of a launch: timed, warm-up and, with no samples, verified ones."""
    rows = samples[(samples["event"] == "all_reduce") & (samples["rank"] == 0)]
    verified = [check.name.split(".") for check in record.checks if check.rank == 0]
    return int(rows["nbytes"].sum()) + sum(int(name[1]) for name in verified if name[0] == "all_reduce")


def payload_share(record: Record, samples: pd.DataFrame) -> float | None:
    """Payload on the busiest node's link over the bytes of the arrays that were reduced.

    payload_share = (bytes - 66 * packets) of the busiest node's interface / bytes of the arrays of all calls

    The kernel counts bytes and packets, in /proc/net/dev of each node's network namespace, just before and just after
    the timed region; of sent and received the larger number counts. 66 bytes of a packet are headers (Ethernet 14, IP
    20, TCP 20, time stamps 12); where the kernel hands several packets on as one, it counts one and its headers once.
    The calls are all all-reduces in this region: timed, warm-up and verified ones. What is neither header nor array is
    counted too: 16 bytes of our transport tcp in each message, and barriers. Retransmitted packets count. The value
    exists where each rank has a node of its own. Suite: collectives.
    """
    counted, reduced = busiest(record), reduced_nbytes(record, samples)
    return counted / reduced if reduced and counted is not None else None


def payload_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Payload on the busiest node's link over 2V(N-1)/N, the least that an all-reduce of V bytes on N ranks needs.

    payload_ratio = [payload_share](payload_share.md) / (2 (N - 1) / N)

    [wire_bytes_ratio](wire_bytes_ratio.md) is the same with the headers of packets. None for one rank. Suite:
    collectives.
    """
    share = payload_share(record, samples)
    return None if share is None or record.case.ranks < 2 else share / bus_factor("all_reduce", record.case.ranks)


def asked_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes that the busiest rank was asked to send in all all-reduces, over 2V(N-1)/N.

    asked_ratio = bytes that the transport of the busiest rank was asked to send / (calls x 2V(N-1)/N)

    As [bytes_per_rank_ratio](bytes_per_rank_ratio.md), in a launch that begins with a ping-pong. Suite: collectives.
    """
    asked, reduced = [part.asked_bytes for part in record.network], reduced_nbytes(record, samples)
    ranks = record.case.ranks
    return max(asked) / (reduced * bus_factor("all_reduce", ranks)) if asked and reduced and ranks > 1 else None


def made_up(wanted: Wanted, least: bool) -> MadeUp:
    """A launch of one all-reduce, for which each node's interface counted, and each rank was asked to send, so many
    times the array, or the least."""
    if least and wanted.case.ranks < 2:
        raise ImpossibleValue("one rank needs no bytes")
    times = bus_factor("all_reduce", wanted.case.ranks) if least else 1.0
    carried = round(possible(wanted.known) * ARRAYS * times)
    return MadeUp((Event("all_reduce", 0.0, 1.0, nbytes=ARRAYS),), wire_bytes=carried)


METRICS = [
    Metric("payload_share", "x", None, launch=payload_share, made_up=lambda wanted: made_up(wanted, False)),
    Metric("payload_ratio", "x", "lower", launch=payload_ratio, made_up=lambda wanted: made_up(wanted, True)),
    Metric(
        "asked_ratio", "1", "lower", launch=asked_ratio, own_count=True, made_up=lambda wanted: made_up(wanted, True)
    ),
]
