"""Metrics of this paper only: what substitution saves, what it should send, and how good its models are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import pandas as pd
from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Count, Published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_wire import link_bytes
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase

ID, VALUE = 8, 4
"""Bytes of an id and of a value."""
MOVED = {"reduce_scatter": 1.0, "all_gather": 1.0, "all_reduce": 2.0}
"""How often a ring moves (n - 1) / n of an array from each rank."""
HEADERS, SEGMENT = 66, 1448
"""Bytes of Ethernet, IP, TCP and its time stamps for each packet, and the most that it carries, at an MTU of 1,500."""
OVERHEAD = HEADERS / SEGMENT + HEADERS / (2 * SEGMENT)
"""Of a byte in full packets, of which every second one is acknowledged by a packet of its own (RFC 5681, section 4.2);
in a ring each node sends as many as it acknowledges. Barriers and our own headers are left out."""
FORMS = {"lr": (1, 0, 0), "fm": (1, 1, 0), "wide_deep": (1, 0, 1), "deepfm": (1, 1, 1), "dcn": (0, 0, 1)}
"""Whether a model has a linear part, pairs and pooled embeddings."""
IN_ORDER = ("lr", "fm", "wide_deep", "deepfm")
"""Models, the one that saves most first: few values are sent for a sample, then many."""
HIDDEN = 32
"""Features of the dense layer behind pooled embeddings."""


class Crossing(Arguments):
    """A model and its data, in the traffic model of suite des2020, with any number of workers."""

    floats: Count = Field(description="p, partial results of a sample.")
    per_id: Count = Field(description="d, values of an id.")
    unique: Count = Field(description="u, ids of the samples of one worker, each once.")
    batch: Count = Field(description="B, samples of one worker.")


class Traffic(Crossing):
    """The same with so many."""

    workers: Count = Field(description="N.")


def crossover_workers(x: Crossing, rows: Published) -> float:
    """crossover_workers = u (8 + 4 d) / (4 p B), the number of workers above which substitution sends more

    Each worker is also a server, and asks itself for nothing: of 2 u (8 + 4 d) bytes a share of (N - 1) / N is sent,
    and by substitution 8 p B (N - 1) (suite des2020). Arithmetic, no launches.
    """
    return x.unique * (ID + VALUE * x.per_id) / (VALUE * x.floats * x.batch)


def substitution_saves(x: Traffic, rows: Published) -> float:
    """substitution_saves = 100 x (1 - 4 p B N 2 (N - 1) / N / (2 u (8 + 4 d))), in %

    Bytes of a worker in a step by substitution over those with parameter servers, which it asks for the rows of its ids
    and sends gradients of them (suite des2020). Arithmetic, no launches.
    """
    return 100 * (1 - _bytes_by_substitution(x) / (2 * x.unique * (ID + VALUE * x.per_id)))


class OnLinks(Traffic):
    """The same over links of a rate."""

    gbit_s: float = Field(gt=0, description="Payload of a link, Gbit/s.")


def substitution_ms(x: OnLinks, rows: Published) -> float:
    """substitution_ms = 1000 x 4 p B N 2 (N - 1) / N x 8 / (rate x 10^9)

    Time that a link takes for what a worker sends in a step by substitution, with nothing beside it (suite des2020).
    Arithmetic, no launches.
    """
    return _bytes_by_substitution(x) * 8 / x.gbit_s / 1e6


def _bytes_by_substitution(x: Traffic) -> float:
    """Of a worker, in a step."""
    return VALUE * x.floats * x.batch * x.workers * 2 * (x.workers - 1) / x.workers


def traffic_saved(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """traffic_saved = 100 x (1 - bytes / bytes of the base), in %

    Bytes that the kernel counted on the nodes' links in the same training, headers and warm-up included (suite
    des2020).
    """
    ours, theirs = link_bytes(launch.record), link_bytes(base.record)
    if ours is None or not theirs:
        return None
    return 100 * (1 - sum(ours.values()) / sum(theirs.values()))


def savings_in_order(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Share of neighbours among LR, FM, Wide & Deep and DeepFM of which the first saves more by substitution, in one
    repetition (suite des2020).

    savings_in_order = neighbours whose shares of saved bytes are in this order / neighbours

    Models that lack a launch by substitution or with synchronous servers are passed over; None where fewer than two are
    left. [traffic_saved](traffic_saved.md) has the shares. The sums of Wide & Deep and DeepFM differ by less than a
    tenth.
    """
    saved = [share for model in IN_ORDER if (share := _share_saved(block, model)) is not None]
    if len(saved) < 2:
        return None
    return sum(one > other for one, other in pairwise(saved)) / (len(saved) - 1)


def _share_saved(block: Sequence[Launch], model: str) -> float | None:
    ways = {str(launch.record.case.value("options.way")): launch for launch in block if _model_of(launch) == model}
    if not {"substitution", "server"} <= ways.keys():
        return None
    return traffic_saved(ways["substitution"], ways["server"])


def _model_of(launch: Launch) -> str:
    return str(launch.record.case.value("options.model"))


def wire_off(record: Record, samples: pd.DataFrame) -> float | None:
    """wire_off = bytes on the links / (payload x (1 + 66 / 1448 + 66 / 2896)) - 1

    Bytes on the links as the kernel counted them; payload from the launch's events (suite des2020): a call and its
    answer, and of a collective what a ring moves of its array. A packet of at most 1,448 bytes has 66 bytes of headers,
    and every second one is acknowledged by 66 bytes. What else there is, barriers and headers of our own, is the rest.
    """
    counted, payload = link_bytes(record), _payload(record, samples)
    return None if counted is None or not payload else sum(counted.values()) / (payload * (1 + OVERHEAD)) - 1


def _payload(record: Record, samples: pd.DataFrame) -> float:
    rows, ranks = columns(record, samples), record.case.ranks
    payload = float(rows.nbytes[rows.of("call")].sum())
    for name, times in MOVED.items():
        payload += times * (ranks - 1) / ranks * float(rows.nbytes[rows.of(name)].sum())
    return payload


def payload_off(record: Record, samples: pd.DataFrame) -> float | None:
    """payload_off = payload of a step by substitution / (2 (N - 1) (4 p B N + 4 w)) - 1

    Of all N workers with B samples each, as the launch's events have it; p partial results of a sample (1 for LR, k + 2
    for FM, k for each field of pooled embeddings) and w weights of dense layers (suite des2020).
    """
    rows, stated = columns(record, samples), stated_payload(record.case)
    steps = len(rows.of("reduce_scatter")) // record.case.ranks
    return None if stated is None or not steps else _payload(record, samples) / (steps * stated) - 1


def stated_payload(case: AnyCase) -> int | None:
    """Bytes of a step of all workers by substitution; None for another way."""
    options = getattr(case, "options", {})
    if options.get("way") != "substitution":
        return None
    linear, pairs, pooled = FORMS[str(options["model"])]
    k, width = int(options["k"]), int(options["fields"]) * int(options["k"])
    floats = linear + pairs * (k + 1) + pooled * width
    dense = 1 + pooled * (HIDDEN * (width + 2) + 1) + 2 * (options["model"] == "dcn") * (width + 1)
    return 2 * (case.ranks - 1) * VALUE * (floats * int(options["batch"]) * case.ranks + dense)


def auc_lost(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """auc_lost = area under the ROC curve of the base - area under the ROC curve (suite des2020)

    After as many samples, on samples that nobody has seen. Below 0: a better model than the base.
    """
    ours, theirs = _auc(launch), _auc(base)
    return None if ours is None or theirs is None else theirs - ours


def _auc(launch: Launch) -> float | None:
    rows = columns(launch.record, launch.samples)
    found = rows.value[rows.of("auc")]
    return float(found[0]) if len(found) else None


def made_up_lost(wanted: Wanted) -> MadeUp:
    """Launches with an area of a half, less what is lost."""
    lost = 0.0 if wanted.value is None else possible(wanted.value, -0.5, 0.5)
    return events(Event("auc", ranks=(0,), value=0.5 - lost))


def made_up_saved(wanted: Wanted) -> MadeUp:
    """A launch that sends a million bytes a node, or so many per cent less."""
    saved = 0.0 if wanted.value is None else possible(wanted.value, -900, 100)
    return MadeUp(wire_bytes=round(1e6 * (1 - saved / 100)))


def made_up_order(wanted: Wanted) -> MadeUp:
    """A repetition in which each model saves less than the one before it (1), or more (all else)."""
    of = wanted.case.value("options.model")
    place = IN_ORDER.index(str(of)) if of in IN_ORDER else 0
    saved = 10.0 * (len(IN_ORDER) - place if possible(wanted.known, 0, 1) == 1 else place)
    is_server = wanted.case.value("options.way") == "server"
    return MadeUp(wire_bytes=1_000_000 if is_server else round(1e6 * (1 - saved / 100)))


def made_up_wire(wanted: Wanted) -> MadeUp:
    """A launch whose links carry so much more than is stated."""
    carried = 1e6 * (1 + OVERHEAD) * (1 + possible(wanted.known, -1.0))
    return MadeUp((Event("call", nbytes=1_000_000),), wire_bytes=round(carried))


def made_up_payload(wanted: Wanted) -> MadeUp:
    """A launch of one step with so much more payload than stated."""
    if (stated := stated_payload(wanted.case)) is None:
        raise ImpossibleValue("no training by substitution")
    asked = stated * (1 + possible(wanted.known, -1.0)) / wanted.case.ranks
    return events(Event("reduce_scatter"), Event("call", nbytes=round(asked)))


METRICS = [
    Metric("crossover_workers", "workers", "higher", model=crossover_workers, x=Crossing),
    Metric("substitution_saves", "%", "higher", model=substitution_saves, x=Traffic, range=(-math.inf, 100.0)),
    Metric("substitution_ms", "ms", "lower", model=substitution_ms, x=OnLinks),
    Metric(
        "traffic_saved", "%", "higher", pair=traffic_saved, same=(), made_up=made_up_saved, range=(-math.inf, 100.0)
    ),
    Metric("savings_in_order", "fraction", "higher", block=savings_in_order, made_up=made_up_order),
    Metric("wire_off", "fraction", "lower", launch=wire_off, made_up=made_up_wire, range=(-1.0, math.inf)),
    Metric("payload_off", "fraction", "lower", launch=payload_off, made_up=made_up_payload, range=(-1.0, math.inf)),
    Metric("auc_lost", "1", "lower", pair=auc_lost, same=(), made_up=made_up_lost, range=(-0.5, 0.5)),
]
