"""What only this suite needs: how much of their set rate emulated links carry, and how far a loss is from that of
processes."""

from __future__ import annotations

import math

import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_replicas import test_loss
from scaleproof.claims.metrics_sizes import bus_factor, by_size
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, CollectiveCase
from scaleproof.spec.cluster import cluster_of
from scaleproof.spec.link_rates import least_transmit_s

RING = "ring"


def carried_share(record: Record, samples: pd.DataFrame) -> float | None:
    """How much of their set rate the links between nodes carry while all nodes send at a time: in all-reduces by the
    ring, of the launch's largest size.

    carried_share = least time in which a node's link passes its part of the array / median time of a call

    In a ring of N nodes each node sends 2(N-1)/N of the array to the next one, all at the same time. The least time
    follows from the rate set on a link, from headers (95.6 % of what a link counts is payload of TCP) and from the
    token bucket, which passes 1 ms at once. A call is that of the slowest rank, so that waits between the rounds count
    as not carried. Launches with more ranks than cores count too: whether the cores carry the rate is what is asked.
    """
    least_s, table = _least_s(record.case), by_size(record, samples)
    if least_s is None or table.empty:
        return None
    return least_s / float(table["time_s"].iloc[-1])


def _least_s(case: AnyCase) -> float | None:
    """Least time of a call of the largest size, in s; None for launches that are no rings over equal links."""
    if not isinstance(case, CollectiveCase) or case.collective != RING or case.nodes != case.ranks:
        return None
    rates = {link.mbit for link in cluster_of(case).links}
    mbit = rates.pop()
    if rates or mbit is None or case.dilation * case.shrink != 1:
        return None
    return least_transmit_s(max(case.sizes) * bus_factor(case.operation, case.ranks), mbit)


def _made_up(wanted: Wanted) -> MadeUp:
    """A launch of one call that takes as long as this share says."""
    least_s = _least_s(wanted.case)
    if least_s is None or not isinstance(wanted.case, CollectiveCase):
        raise ImpossibleValue("only rings over links of one rate have a share")
    took_s = least_s / possible(wanted.known, 1e-9)
    return events(Event(wanted.case.operation, 0.0, took_s, nbytes=max(wanted.case.sizes)))


def loss_ratio(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Loss on the test set at the end of a training, over that of the base launch with the same seed and data.

    loss_ratio = test_loss of the launch / test_loss of its base

    1 where both end at the same loss. Launches of one seed start from the same parameters and see the same samples;
    what differs is when ranks exchange.
    """
    ours, theirs = (test_loss(each.record, each.samples) for each in (launch, base))
    return ours / theirs if ours is not None and theirs else None


def _made_up_loss(wanted: Wanted) -> MadeUp:
    """A launch that ends at this loss; its base ends at 1."""
    loss = 1.0 if wanted.value is None else possible(wanted.value)
    return events(Event("test_loss", ranks=(0,), value=loss))


METRICS = [
    Metric(
        "carried_share",
        "fraction",
        "higher",
        launch=carried_share,
        clocked=True,
        counts_oversubscribed=True,
        made_up=_made_up,
    ),
    Metric("loss_ratio", "x", None, pair=loss_ratio, made_up=_made_up_loss, range=(0.0, math.inf)),
]
