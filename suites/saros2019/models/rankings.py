"""How well items are ranked, where bots bring theirs, and how much was done for it: values that a launch notes."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noted import noted, value_of
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record

OWN = (
    "Candidates are the user's own items of the test part, the last 20 % of each user's interactions in time; users "
    "without a click there are left out."
)


def diverged_words(record: Record, samples: pd.DataFrame) -> str | None:
    """What a launch that diverged has in place of a number."""
    found = value_of(record, samples, "diverged")
    return None if found is None else f"diverged at pass {int(found)}"


def updates_saved(record: Record, samples: pd.DataFrame) -> float | None:
    """Updates of a pass over all pairs over those of a pass of SAROS (suite saros2019).

    updates_saved = pairs of a clicked item and one without a click of the same user / steps of a pass
    """
    pairs, updates = value_of(record, samples, "all_pairs"), value_of(record, samples, "updates_per_pass")
    return pairs / updates if pairs and updates else None


def made_up_updates(wanted: Wanted) -> MadeUp:
    """A launch that makes 1,000 steps in a pass."""
    return events(Event("all_pairs", value=1000 * possible(wanted.known)), Event("updates_per_pass", value=1000.0))


def definition_gain(record: Record, samples: pd.DataFrame) -> float | None:
    """How much higher MAP@5 is by the authors' definition (suite saros2019).

    definition_gain = [authors_map_at_5](authors_map_at_5.md) / [map_at_5](map_at_5.md), of the same ranking
    """
    theirs, usual = value_of(record, samples, "authors_map_at_5"), value_of(record, samples, "map_at_5")
    return theirs / usual if theirs is not None and usual else None


def made_up_gain(wanted: Wanted) -> MadeUp:
    """A launch with a usual MAP@5 of 0.1."""
    return events(Event("authors_map_at_5", value=0.1 * possible(wanted.known)), Event("map_at_5", value=0.1))


def diverged_updates(record: Record, samples: pd.DataFrame) -> str | None:
    """What a launch of experiment `updates` that diverged has in place of a number."""
    found = value_of(record, samples, "diverged")
    return None if found is None else f"diverged after {int(found)} updates"


def loss_at_updates(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """Loss over all pairs over that of the base, after equally many updates (suite saros2019).

    loss_at_updates = [pair_loss](pair_loss.md) / that of the base, at the most updates that both have made

    Between two values the loss is interpolated linearly.
    """
    ours, theirs = _losses(launch), _losses(base)
    if not ours or not theirs:
        return None
    place = min(max(ours), max(theirs))
    at, base_at = (float(np.interp(place, list(each), list(each.values()))) for each in (ours, theirs))
    return at / base_at if base_at else None


def _losses(launch: Launch) -> dict[int, float]:
    """By the number of updates before it."""
    rows = columns(launch.record, launch.samples)
    found = rows.of("pair_loss")
    return dict(sorted(zip(rows.step[found].tolist(), rows.value[found].tolist(), strict=True)))


def made_up_losses(wanted: Wanted) -> MadeUp:
    """Launches with one value, of which the base has half a nat."""
    ratio = 1.0 if wanted.value is None else possible(wanted.value)
    return events(Event("pair_loss", ranks=(0,), value=0.5 * ratio))


def _quality(name: str, text: str) -> Metric:
    of_ratios = (0, math.inf)  # of two launches, too
    return noted(name, "fraction", "higher", text, range=of_ratios, instead=diverged_words)


METRICS = [
    noted(
        "pair_loss",
        "nat",
        "lower",
        """
        Loss over all pairs of a clicked item and one without a click of the same user in the training part, without L2
        (suite saros2019).

        pair_loss = mean over users of the mean over their pairs of log(1 + exp(-U.(Vi - Vj)))

        Guessing has log 2 = 0.693. It is noted after 1, 2, 4, ... updates; the value of a launch is the last one.
        """,
        range=(0, math.inf),
        instead=diverged_updates,
        curve=True,
    ),
    Metric("loss_at_updates", "x", "lower", pair=loss_at_updates, same=(), made_up=made_up_losses),
    _quality(
        "map_at_5",
        f"""
        Mean average precision of the first 5 places (suite saros2019).

        AP@5 = sum over hits at places i <= 5 of (hits up to i) / i, divided by min(5, clicks of the user)

        {OWN}
        """,
    ),
    _quality(
        "map_at_10",
        f"""
        Mean average precision of the first 10 places (suite saros2019), as [map_at_5](map_at_5.md).

        {OWN}
        """,
    ),
    _quality(
        "ndcg_at_5",
        f"""
        Normalised discounted cumulative gain of the first 5 places (suite saros2019).

        NDCG@5 = sum over hits at places i <= 5 of 1 / log2(i + 1), divided by what it is with all clicks first

        {OWN}
        """,
    ),
    _quality(
        "ndcg_at_10",
        f"""
        Normalised discounted cumulative gain of the first 10 places (suite saros2019), as [ndcg_at_5](ndcg_at_5.md).

        {OWN}
        """,
    ),
    _quality(
        "authors_map_at_5",
        f"""
        Mean average precision as the authors' script computes it (suite saros2019, SAROS@9ce3670).

        AP@5 = sum over hits at places i <= 5 of (hits up to i) / i, divided by the hits among the first 5

        What is missed costs nothing: a user with one hit, at place 1, has 1. {OWN}
        """,
    ),
    _quality(
        "authors_ndcg_at_5",
        f"""
        NDCG@5 as the authors' script computes it (suite saros2019, SAROS@9ce3670).

        NDCG@5 = sum over hits at places i <= 5 of 1 / log2(max(i, 2)), divided by what it is with all hits first

        The first two places count equally. Hits are those among the first 10 places: a click that is further down costs
        nothing. {OWN}
        """,
    ),
    _quality(
        "catalogue_map_at_5",
        """
        Mean average precision of the first 5 places among all items that the user has not met in the training part
        (suite saros2019); clicks of the test part are hits. As [map_at_5](map_at_5.md) but for the candidates.
        """,
    ),
    noted(
        "promoted_place",
        "1",
        "higher",
        doc="""
        Mean place of the item that bots click, among all items, over real users (suite saros2019).

        promoted_place = 1 + mean over real users of the number of items with a higher score

        Without bots it is the place of the same item, one with about 5 clicks. 1: it stands first for everybody.
        """,
    ),
    noted(
        "promoted_share",
        "fraction",
        "lower",
        doc="""
        Share of real users for whom the item that bots click is among the first 10 of all items (suite saros2019).

        See [promoted_place](promoted_place.md) for its mean place, which says less: where it comes first for half of
        the users and last for the others, the mean does not move.
        """,
    ),
    Metric(
        "definition_gain",
        "x",
        None,
        launch=definition_gain,
        made_up=made_up_gain,
        instead=diverged_words,
    ),
    Metric("updates_saved", "x", "higher", launch=updates_saved, made_up=made_up_updates, own_count=True),
    *(
        noted(
            f"{who}_undone",
            "fraction",
            None,
            own_count=True,
            doc=f"Share of {words} with fewer or more blocks than the limits b and B allow (suite saros2019).",
        )
        for who, words in (("users", "real users"), ("bots", "bots"))
    ),
]
