"""What only this suite needs: the formulas of its rows beside the event engine, beside measured calls and beside what
links carried, and the orders of reductions."""

from __future__ import annotations

from . import calls, constants, crossover, links, order, rows

METRICS = [
    *rows.METRICS,
    *constants.METRICS,
    *calls.METRICS,
    *crossover.METRICS,
    *links.METRICS,
    *order.METRICS,
]
