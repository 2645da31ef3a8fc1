"""Sums of the same numbers by several algorithms (programs/reduction_order.py): do the bits depend on the order?"""

from __future__ import annotations

from typing import Any

import pandas as pd

from scaleproof.claims.made_up import Wanted, possible, with_facts
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record

Facts = dict[str, dict[str, dict[str, Any]]]
ELEMENTS = 1_000_000
"""Of a made-up launch."""


def _facts(record: Record) -> list[Facts]:
    """Of each rank: by algorithm and element type."""
    return [found for rank in record.ranks if (found := rank.facts.get("order"))]


def integers_wrong(record: Record, samples: pd.DataFrame) -> float | None:
    """Sums of 64-bit integers that differ from NumPy's, the largest number of any rank and algorithm.

    integers_wrong = largest number of elements that differ, over ranks and algorithms

    Integers add up exactly in any order, so every algorithm must give NumPy's sums bit by bit. Suite: collectives.
    """
    return max((float(sums["int64"]["differ"]) for facts in _facts(record) for sums in facts.values()), default=None)


def order_dependence(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of float32 sums whose bits differ from the sum in the order of ranks, in the algorithm that differs most.

    order_dependence = largest share of elements that differ from ((x0 + x1) + x2) + ..., over algorithms, on rank 0

    The summands are random and normally distributed. Each algorithm adds in an order of its own, always the same one,
    so the value depends on no timing. Two numbers have the same sum in either order: with 2 ranks it is 0. Suite:
    collectives.
    """
    shares = [
        each["float32"]["differ"] / each["float32"]["elements"] for f in _facts(record)[:1] for each in f.values()
    ]
    return max(shares, default=None)


def _made_up(int64: int = 0, float32: int = 0) -> dict[str, Any]:
    """Facts of one rank, for one algorithm."""
    differ = {"int64": int64, "float32": float32}
    return {"order": {"ring": {name: {"differ": count, "elements": ELEMENTS} for name, count in differ.items()}}}


def _wrong(value: float, wanted: Wanted) -> dict[str, Any]:
    return _made_up(int64=round(possible(value)))


def _differing(value: float, wanted: Wanted) -> dict[str, Any]:
    return _made_up(float32=round(possible(value, 0, 1) * ELEMENTS))


METRICS = [
    Metric("integers_wrong", "elements", "lower", launch=integers_wrong, own_count=True, made_up=with_facts(_wrong)),
    Metric("order_dependence", "fraction", None, launch=order_dependence, made_up=with_facts(_differing)),
]
