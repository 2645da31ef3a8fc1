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


FORWARD = 0.25
"""Share of a visit that is forward: it reads a row of weights; the way back reads it again, and reads and writes a row
of the gradient."""
PARTS = ("hashing", "forward", "backward", "adam", "rebuild")
"""Of an iteration of SLIDE, beside what costs the same with few labels."""


def slide_parts(counts: Counts, rates: Rates) -> dict[str, float]:
    """Seconds of each part of an iteration of SLIDE, with its share of a rebuild."""
    visits = counts.batch * counts.active * rates.visit
    return {
        "hashing": counts.batch * rates.hash,
        "forward": FORWARD * visits,
        "backward": (1 - FORWARD) * visits,
        "adam": counts.changed * rates.adam,
        "rebuild": counts.labels * (rates.hash + counts.tables * rates.insert) / counts.period,
    }


def slide_s(counts: Counts, rates: Rates) -> float:
    """Seconds of an iteration of SLIDE."""
    return rates.fixed + sum(slide_parts(counts, rates).values())


def full_s(counts: Counts, rates: Rates) -> float:
    """Seconds of an iteration of the full softmax."""
    flops = 6 * counts.batch * counts.labels * HIDDEN
    passes = ADAM_PASSES * HIDDEN + SOFTMAX_PASSES * counts.batch
    return rates.fixed + flops * rates.flop + counts.labels * passes * FLOAT * rates.byte
