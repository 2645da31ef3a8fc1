"""What ranks that hold their own users send each other to agree on the factors of items."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from pydantic import Field

from scaleproof.claims.arithmetic import Amount, Arguments, Count, Published, Workers
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, OwnCase

from .traffic import Setting, all_reduce_bytes, server_bytes

SMALL = 1e-300
"""Keeps a ratio of two equal numbers finite."""


def sent_per_pass(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes that a rank is asked to send in a pass over its users, mean over ranks (suite saros2019)."""
    rows = columns(record, samples)
    found = rows.of("sent")
    if not len(found) or not isinstance(record.case, OwnCase):
        return None
    return float(rows.value[found].mean()) / record.case.iterations


def setting_of(case: AnyCase) -> Setting | None:
    """Of a case whose users are divided over ranks."""
    if not isinstance(case, OwnCase) or "round_users" not in case.options or case.ranks < 2:
        return None
    of = case.options
    return Setting(
        int(of["users"]),
        int(of["items"]),
        float(of["mean"]),
        float(of["exponent"]),
        case.ranks,
        int(of["round_users"]),
        int(of["dim"]),
    )


def _predicted(case: AnyCase) -> float | None:
    setting = setting_of(case)
    if setting is None or not isinstance(case, OwnCase):
        return None
    return all_reduce_bytes(setting) if case.options["exchange"] == "all_reduce" else server_bytes(setting)


def sent_error(record: Record, samples: pd.DataFrame) -> float | None:
    """How far the predicted bytes of an exchange are from the counted ones (suite saros2019).

    sent_error = |predicted / [sent_per_pass](sent_per_pass.md) - 1|

    Predicted from the law of the data alone: an all-reduce sends 2 (n - 1) / n times the factors of all items in each
    round, servers those of the items that the users of a round are expected to meet.
    """
    sent, predicted = sent_per_pass(record, samples), _predicted(record.case)
    return None if not sent or predicted is None else abs(predicted / sent - 1)


def exchange_difference(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Largest relative distance of the factors of items that any two ranks end with, in ways to exchange them with the
    same rounds, in one repetition (suite saros2019).

    exchange_difference = max over numbers of users in a round and pairs of ranks of |V - V'| / |V|

    |V - V'| is the root mean square of the differences of 32 random projections of V and V', 12 % off at one standard
    deviation. None where no two ways were run with the same rounds.
    """
    ended: dict[int, list[np.ndarray]] = {}
    for launch in block:
        setting, found = setting_of(launch.record.case), _sketches(launch)
        if setting is not None and found is not None:
            ended.setdefault(setting.round_users, []).append(found)
    apart = [_farthest(np.concatenate(found)) for found in ended.values() if len(found) > 1]
    return max(apart) if apart else None


def _sketches(launch: Launch) -> np.ndarray | None:
    """Projections over the norm, of each rank (ranks, projections); None where none were noted."""
    rows = columns(launch.record, launch.samples)
    norms, projections = rows.of("items_norm"), rows.of("items_sketch")
    if not len(norms) or not len(projections):
        return None
    by_rank = projections[np.lexsort((rows.step[projections], rows.rank[projections]))]
    norm = rows.value[norms[np.argsort(rows.rank[norms], kind="stable")]]
    found: np.ndarray = rows.value[by_rank].reshape(len(norm), -1) / np.maximum(norm, SMALL)[:, None]
    return found


def _farthest(sketches: np.ndarray) -> float:
    """Largest root mean square of the difference of two rows."""
    differences = sketches[:, None, :] - sketches[None, :, :]
    return float(np.sqrt((differences**2).mean(axis=2)).max())


class OfExchange(Arguments):
    """The `x` of server_saves: see models/traffic.py."""

    users: Count = Field(description="Users of all ranks.")
    items: Count = Field(description="Items.")
    mean: Amount = Field(description="Mean number of interactions of a user.")
    exponent: Amount = Field(description="Zipf's exponent of the items' popularity.")
    ranks: Workers = Field(description="Ranks that users are divided over.")
    round_users: Count = Field(description="Users of a rank between two exchanges.")
    dim: Count = Field(description="Factors of an item.")


def server_saves(x: OfExchange, _published: Published) -> float:
    """Bytes that an all-reduce of the factors of items sends, over those of parameter servers (suite saros2019).

    server_saves = all-reduce's bytes / servers' bytes, of a pass, by the model of [sent_error](sent_error.md)
    """
    setting = Setting(x.users, x.items, x.mean, x.exponent, x.ranks, x.round_users, x.dim)
    return all_reduce_bytes(setting) / server_bytes(setting)


def made_up_sent(wanted: Wanted) -> MadeUp:
    """A launch whose ranks send so much in a pass."""
    if not isinstance(wanted.case, OwnCase):
        raise ImpossibleValue("the case has no passes")
    return events(Event("sent", value=possible(wanted.known) * wanted.case.iterations))


def made_up_error(wanted: Wanted) -> MadeUp:
    """A launch that sends less than predicted, so that the error is the value."""
    predicted = _predicted(wanted.case)
    if predicted is None or not isinstance(wanted.case, OwnCase):
        raise ImpossibleValue("the case exchanges nothing")
    return events(Event("sent", value=predicted / (1 + possible(wanted.known)) * wanted.case.iterations))


def made_up_difference(wanted: Wanted) -> MadeUp:
    """Launches whose factors are so far apart: those of servers are moved."""
    if not isinstance(wanted.case, OwnCase) or "exchange" not in wanted.case.options:
        raise ImpossibleValue("the case exchanges nothing")
    apart = possible(wanted.known) if wanted.case.options["exchange"] == "server" else 0.0
    return events(Event("items_norm", value=1.0), Event("items_sketch", value=1.0 + apart))


METRICS = [
    Metric("sent_per_pass", "bytes", "lower", launch=sent_per_pass, made_up=made_up_sent, own_count=True),
    Metric(
        "sent_error",
        "fraction",
        "lower",
        launch=sent_error,
        made_up=made_up_error,
        range=(0, math.inf),
        own_count=True,
    ),
    Metric(
        "exchange_difference",
        "1",
        "lower",
        block=exchange_difference,
        made_up=made_up_difference,
        own_count=True,
    ),
    Metric("server_saves", "x", "higher", model=server_saves, x=OfExchange),
]
