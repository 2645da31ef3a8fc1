"""What a training asks its links to carry, stated from its case alone: sizes of models, ids of the minibatches as they
are drawn, and the standards of TCP and Ethernet. Nothing that a launch counts goes into it."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from scaleproof.spec.case import AnyCase, OwnCase

from .traffic_model import ID, VALUE

HEADERS, SEGMENT = 66, 1448
"""Bytes of Ethernet, IP, TCP and its time stamps for each packet, and the most that it carries, at an MTU of 1,500."""
FRAME = 24
"""Bytes of our own header, in front of each message."""
FORMS = {"lr": (1, 0, 0), "fm": (1, 1, 0), "wide_deep": (1, 0, 1), "deepfm": (1, 1, 1), "dcn": (0, 0, 1)}
"""Whether a model has a linear part, pairs and pooled embeddings."""
HIDDEN = 32
"""Features of the dense layer behind pooled embeddings."""


class Sent(NamedTuple):
    """Equal messages of all ranks in a launch, with bytes of payload and of a name."""

    count: int
    payload: int
    name: str = ""


class Ids(NamedTuple):
    """Of a step: `asked[w, s]`: different ids of worker w's samples that server s holds; `longest`: most ids of the
    whole minibatch that one server holds."""

    asked: np.ndarray
    longest: int


def stated_payload(case: AnyCase) -> int | None:
    """Bytes that all ranks ask for in a launch; None of a case that is no such training, or one with a test."""
    return None if (sent := sent_by(case)) is None else sum(each.count * each.payload for each in sent)


def stated_wire(case: AnyCase) -> int | None:
    """The same on the links: messages with headers, and an acknowledgement of its own for every second packet of a
    message and for its last (RFC 5681, section 4.2)."""
    return None if (sent := sent_by(case)) is None else sum(each.count * _on_links(each) for each in sent)


def sent_by(case: AnyCase) -> list[Sent] | None:
    """All messages of a training over a ring, warm-up included."""
    if not isinstance(case, OwnCase) or case.options.get("model") not in FORMS or case.options.get("test_samples"):
        return None
    steps = case.warmup + case.iterations
    return [each for step in range(steps) for each in _of_step(case, step)] + _barrier(case.ranks)


def _on_links(sent: Sent) -> int:
    whole = FRAME + len(sent.name) + sent.payload
    packets = math.ceil(whole / SEGMENT)
    return whole + HEADERS * (packets + math.ceil(packets / 2))


def _of_step(case: OwnCase, step: int) -> Iterator[Sent]:
    options, ranks = case.options, case.ranks
    linear, pairs, pooled = FORMS[str(options["model"])]
    k, width, way = int(options["k"]), int(options["fields"]) * int(options["k"]), str(options["way"])
    per_id, floats = linear + k * (pairs or pooled), linear + pairs * (k + 1) + pooled * width
    dense = 1 + pooled * (HIDDEN * (width + 2) + 1) + 2 * (options["model"] == "dcn") * (width + 1)
    around = 2 * ranks * (ranks - 1)
    if way == "substitution":  # a reduce-scatter of sums, and an all-gather of their gradients
        yield Sent(around, VALUE * floats * int(options["batch"]))
    elif way == "all_gather":  # rows, and gradients
        yield Sent(around, VALUE * per_id * ids_of(case, step).longest)
    else:
        yield from _with_servers(ids_of(case, step).asked, VALUE * per_id)
    if way == "async_server":
        yield from (Sent(ranks - 1, VALUE * dense, "dense"), Sent(ranks - 1, VALUE * dense))
        return
    for part in range(ranks):  # an all-reduce; parts without an element are not sent
        if count := (part + 1) * dense // ranks - part * dense // ranks:
            yield Sent(2 * (ranks - 1), VALUE * count)
    if way == "server":
        yield from 2 * _barrier(ranks)


def _with_servers(asked: np.ndarray, row: int) -> Iterator[Sent]:
    """`row`: bytes of the values of an id. Nobody asks itself."""
    for worker, server in np.argwhere(~np.eye(len(asked), dtype=bool)):
        ids = int(asked[worker, server])
        yield from (Sent(1, ID * ids, "pull"), Sent(1, row * ids))
        yield from (Sent(1, (ID + row) * ids, "push"), Sent(1, 0))


def _barrier(ranks: int) -> list[Sent]:
    """By dissemination: in each of log2 N rounds each rank sends a message without a payload."""
    return [Sent(ranks * math.ceil(math.log2(ranks)), 0)]


def ids_of(case: OwnCase, step: int) -> Ids:
    """Of the minibatch of a step."""
    of = case.options
    law = (int(of["ids"]), int(of["slots"]), int(of["fields"]), float(of["exponent"]))
    return _ids_of(law, int(of.get("seed", 1)), step, int(of["batch"]), case.ranks)


@lru_cache(maxsize=512)
def _ids_of(law: tuple[Any, ...], seed: int, step: int, batch: int, ranks: int) -> Ids:
    data = _click_data()
    drawn = data.draw(data.Law(*law), seed, step, batch * ranks).ids.reshape(ranks, -1)
    asked = np.array([np.bincount(np.unique(own) % ranks, minlength=ranks) for own in drawn])
    return Ids(asked, int(np.bincount(np.unique(drawn) % ranks).max()))


@cache
def _click_data() -> ModuleType:
    """programs/click_data.py, which draws the samples."""
    path = Path(__file__).parents[1] / "programs" / "click_data.py"
    spec = importlib.util.spec_from_file_location(f"{__package__}.click_data", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look it up
    spec.loader.exec_module(module)
    return module
