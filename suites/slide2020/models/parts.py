"""The share of each part in SLIDE's iteration, by the model of operations with what each costs in the launch."""

from __future__ import annotations

from functools import partial

import pandas as pd

from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import OwnCase

from .costs import PARTS, Counts, Rates, slide_parts, slide_s
from .iterations import RATES, counts_and_rates

RATE_OF = {"hashing": "hash", "forward": "visit", "backward": "visit", "adam": "adam", "rebuild": "insert"}
"""What a part costs by itself."""
SAID = {
    "hashing": "hashing a batch",
    "forward": "visits of active neurons on the way forward",
    "backward": "visits of active neurons on the way back",
    "adam": "Adam",
    "rebuild": "a share of a rebuild of the tables",
}


def modelled_share(part: str, record: Record, samples: pd.DataFrame) -> float | None:
    """The share of a part in the modelled iteration, in %; None for launches without rates, or of other methods."""
    known, case = counts_and_rates(record, samples), record.case
    if known is None or not isinstance(case, OwnCase) or case.options["method"] != "slide":
        return None
    whole = slide_s(*known)
    return 100 * slide_parts(*known)[part] / whole if whole else None


def made_up_share(part: str, wanted: Wanted) -> MadeUp:
    """Launches whose iteration takes 1 s, of which the part takes its share; one neuron is active, one row changed."""
    case = wanted.case
    if not isinstance(case, OwnCase) or case.options.get("method") != "slide":
        raise ImpossibleValue("the case has no iterations of SLIDE")
    of = case.options
    counts = Counts(int(of["labels"]), int(of["batch"]), 1.0, 1.0, int(of["tables"]), int(of["period"]))
    alone = slide_parts(counts, Rates(**{RATE_OF[part]: 1.0}))
    rate = possible(wanted.known, 0, 100) / 100 / alone[part]
    rates = {RATE_OF[part]: rate, "fixed": possible(1 - rate * sum(alone.values()))}
    noted = [Event(f"rate_{name}", value=rates.get(name, 0.0)) for name in RATES]
    return events(Event("active", value=1.0), Event("changed_rows", value=1.0), *noted)


def _page(part: str) -> str:
    return f"""
    modelled_{part}_share = 100 * modelled time of {SAID[part]} / modelled time of an iteration of SLIDE

    The model of suite slide2020 (suites/slide2020/models/costs.py): operations are counted, and multiplied with what
    each costs alone in the same launch. Its error is [iteration_error](iteration_error.md).
    """


METRICS = [
    Metric(
        f"modelled_{part}_share",
        "%",
        None,
        launch=partial(modelled_share, part),
        made_up=partial(made_up_share, part),
        clocked=True,
        doc=_page(part),
        range=(0, 100),
    )
    for part in PARTS
]
