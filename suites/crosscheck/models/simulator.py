"""Our simulator beside one that others wrote."""

from __future__ import annotations

import pandas as pd

from scaleproof.claims.finished_launch import timed
from scaleproof.claims.made_up import reporting
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record


def simgrid_difference(record: Record, samples: pd.DataFrame) -> float | None:
    """Largest difference between our simulator and SimGrid in the end of an operation.

    simgrid_difference = max over random graphs and their operations of |end in ours - end in SimGrid| / end in SimGrid

    An operation is a computation or a message of a graph of up to 400, on a random cluster of 2 to 16 nodes with one
    or two levels of switches. Both simulators have the same fluid model: max-min fair rates, and the same delay for
    every message. Suite: crosscheck.
    """
    differences = timed(samples, "difference")
    return float(differences["value"].max()) if len(differences) else None


METRICS = [Metric("simgrid_difference", "1", "lower", launch=simgrid_difference, made_up=reporting("difference"))]
