"""What substitution saves on links, beside parameter servers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import MadeUp, Wanted, possible
from scaleproof.claims.metric import Metric
from scaleproof.claims.metrics_wire import link_bytes

IN_ORDER = ("lr", "fm", "wide_deep", "deepfm")
"""Models, the one that saves most first: few values are sent for a sample, then many."""


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


METRICS = [
    Metric(
        "traffic_saved", "%", "higher", pair=traffic_saved, same=(), made_up=made_up_saved, range=(-math.inf, 100.0)
    ),
    Metric("savings_in_order", "fraction", "higher", block=savings_in_order, made_up=made_up_order),
]
