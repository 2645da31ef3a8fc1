"""What a step of a rank sends, beside the formulas of the paper."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.workloads.case_network import network_of

from .beside import ALL_REDUCE

FLOAT32 = 4


def bytes_over_formula(record: Record, samples: pd.DataFrame) -> float | None:
    """Bytes that ranks ask to send in a step, over what jin2016's formulas say.

    bytes_over_formula = bytes asked of the transport by all ranks / (steps of all ranks x bytes by the formula)

    Barriers and what ends a mailbox carry no bytes; warm-up steps count. By the formula a rank of p sends n bytes of
    parameters every tau steps in gossip, and 2n(p-1)/p in every all-reduce. Suite: jin2016.
    """
    traffic = [each for each in record.transport.get("traffic", []) if each]
    steps = len(columns(record, samples).of("step"))
    if not steps or len(traffic) < record.case.ranks:
        return None
    return float(sum(each["nbytes"] for each in traffic) / (steps * _formula(record.case)))


def _formula(case: AnyCase) -> float:
    if not isinstance(case, TrainCase):
        raise ImpossibleValue("a step is one of a training")
    nbytes = FLOAT32 * network_of(case).parameters
    if case.arm == ALL_REDUCE:
        return 2 * nbytes * (case.ranks - 1) / case.ranks
    return nbytes / float(case.value("strategy.tau", 1))


def made_up_bytes(wanted: Wanted) -> MadeUp:
    """A launch of one step in which every rank sends so many times the formula's bytes."""
    sent = {"nbytes": possible(wanted.known) * _formula(wanted.case)}
    return MadeUp((Event("step", 0.0, 1.0),), transport={"traffic": [sent] * wanted.case.ranks})


METRICS = [
    Metric("bytes_over_formula", "1", None, launch=bytes_over_formula, own_count=True, made_up=made_up_bytes),
]
