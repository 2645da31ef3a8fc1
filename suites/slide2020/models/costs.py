"""The model of one iteration: operations are counted, and multiplied with what each costs."""

from __future__ import annotations

from dataclasses import dataclass

HIDDEN = 128
FLOAT = 4
"""Bytes of a float."""
ADAM_PASSES = 7
"""Passes of Adam over arrays as large as the weights: weights, gradients and both moments are read, all but the
gradients are written."""
SOFTMAX_PASSES = 8
"""Passes over the logits of a batch: written, read and written as logarithms, their exponentials and the errors written
and read, and read by two products."""


@dataclass(frozen=True)
class Counts:
    """Of one iteration. `active`: mean active neurons of a sample; `changed`: rows that Adam changes; `period`: steps
    between two rebuilds of `tables` tables."""

    labels: int
    batch: int
    active: float
    changed: float
    tables: int
    period: int


@dataclass(frozen=True)
class Rates:
    """Seconds of one operation on all threads: a visit of an active neuron, forward and back; a row of Adam; the hash
    of a vector in all tables; an insertion into one table; a floating-point operation of a product; a byte of a pass;
    and a step with few labels."""

    visit: float = 0.0
    adam: float = 0.0
    hash: float = 0.0
    insert: float = 0.0
    flop: float = 0.0
    byte: float = 0.0
    fixed: float = 0.0


def slide_s(counts: Counts, rates: Rates) -> float:
    """Seconds of an iteration of SLIDE, with its share of a rebuild."""
    rebuild = counts.labels * (rates.hash + counts.tables * rates.insert)
    visits = counts.batch * (counts.active * rates.visit + rates.hash)
    return rates.fixed + visits + counts.changed * rates.adam + rebuild / counts.period


def full_s(counts: Counts, rates: Rates) -> float:
    """Seconds of an iteration of the full softmax."""
    flops = 6 * counts.batch * counts.labels * HIDDEN
    passes = ADAM_PASSES * HIDDEN + SOFTMAX_PASSES * counts.batch
    return rates.fixed + flops * rates.flop + counts.labels * passes * FLOAT * rates.byte
