"""Counts that the programs record: tensors copied before a send, failures, refusals, static edges."""

from __future__ import annotations

from functools import partial

import pandas as pd

from scaleproof.claims.made_up import Event, MadeUp, MakeUp, Wanted, possible, with_facts
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record


def copied_share(record: Record, samples: pd.DataFrame, first: bool) -> float | None:
    """Share of the tensors sent that had to be copied, in the first step or in all later ones."""
    rows = samples[samples["event"].isin(["born_copied", "born_placed"])]
    rows = rows[(rows["step"] == 0) == first]
    total = rows["value"].sum()
    return float(rows.loc[rows["event"] == "born_copied", "value"].sum() / total) if total else None


def fact_count(record: Record, samples: pd.DataFrame, name: str) -> float | None:
    """A number that rank 0 recorded."""
    count = record.ranks[0].facts.get("found", {}).get(name) if record.ranks else None
    return None if count is None else float(count)


def made_up_copies(wanted: Wanted) -> MadeUp:
    """A launch in whose steps, the first and a later one, this share of the tensors was copied."""
    share = possible(wanted.known, 0, 1)
    parts = (("born_copied", share), ("born_placed", 1 - share))
    return MadeUp(tuple(Event(name, step=step, value=value) for step in (0, 1) for name, value in parts))


def made_up_fact(name: str) -> MakeUp:
    """Launches in which rank 0 recorded a number."""
    return with_facts(lambda value, wanted: {"found": {name: value}})


METRICS = [
    Metric(
        "copied_share_first",
        "fraction",
        "lower",
        launch=partial(copied_share, first=True),
        own_count=True,
        made_up=made_up_copies,
        doc="""
        copied_share_first = tensors that had to be copied into a send buffer / tensors sent, in the first step

        Before the first step it is not known which operation allocates the tensors that are sent, so the share is 1. It
        is a count and depends on no clock. See [allocation.md](../allocation.md).
        """,
    ),
    Metric(
        "copied_share_later",
        "fraction",
        "lower",
        launch=partial(copied_share, first=False),
        own_count=True,
        made_up=made_up_copies,
        doc="""
        copied_share_later = tensors that had to be copied into a send buffer / tensors sent, in all steps but the first

        The share is 0 where every tensor is allocated in registered memory. An operation that has no kernel for writing
        into existing memory keeps it above 0: see [allocation.md](../allocation.md).
        """,
    ),
    Metric(
        "fails",
        "bool",
        "lower",
        launch=partial(fact_count, name="fails"),
        made_up=made_up_fact("fails"),
        doc="""
        fails = 1 when a tensor larger than any that arrived in the published results did not arrive, 0 when it did

        The launch itself ends well in both cases. The name of the failure is in rank 0's facts (`found`). The whole
        content is compared: a tensor whose content differs from what was sent fails the launch.
        """,
    ),
    Metric(
        "refused",
        "bool",
        "higher",
        launch=partial(fact_count, name="refused"),
        made_up=made_up_fact("refused"),
        doc="""
        refused = 1 when a message above a limit was refused, 0 when nothing failed

        A check of the same launch verifies the name of the error: `RESOURCE_EXHAUSTED` by gRPC, `message_too_large` by
        our transports. A message within the limit is sent first.
        """,
    ),
    Metric(
        "static_edges_share",
        "fraction",
        "higher",
        launch=partial(fact_count, name="static_edges_share"),
        own_count=True,
        made_up=made_up_fact("static_edges_share"),
        doc="""
        static_edges_share = weights and gradients that the graph analyser places statically / weights and gradients
        that cross between servers

        Activations with a free batch dimension are dynamic and not included. See [allocation.md](../allocation.md).
        """,
    ),
]
