"""Metrics of the PageRank experiment, from a launch's facts and samples, and the arithmetic of the published rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from scaleproof.claims.claim_form import PublishedRow
from scaleproof.claims.finished_launch import timed
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record

SECOND = 1e9
"""Nanoseconds."""
Rows = Mapping[str, PublishedRow]


def _fact(record: Record, name: str) -> dict[str, Any]:
    found: dict[str, Any] = record.ranks[0].facts.get(name, {}) if record.ranks else {}
    return found


def _iterations(record: Record, method: str) -> int | None:
    found: int | None = _fact(record, "convergence").get("iterations", {}).get(method)
    return found


def _solve_s(samples: pd.DataFrame, method: str) -> float | None:
    """Median s of one solve."""
    rows = timed(samples, method)
    return float((rows["end_ns"] - rows["start_ns"]).median()) / SECOND if len(rows) else None


def power_iterations(record: Record, samples: pd.DataFrame) -> float | None:
    """Iterations of the power method until the residual is within the tolerance."""
    return _iterations(record, "power")


def work(record: Record, samples: pd.DataFrame, method: str) -> float | None:
    """Iterations of a method over those of power iteration; each costs one product with the matrix."""
    ours, power = _iterations(record, method), _iterations(record, "power")
    if ours is None or power is None:
        return None
    return ours / power


def time_ratio(record: Record, samples: pd.DataFrame, method: str) -> float | None:
    """Time of a solve over that of power iteration in the same launch."""
    ours, power = _solve_s(samples, method), _solve_s(samples, "power")
    return ours / power if ours is not None and power else None


def per_s(record: Record, samples: pd.DataFrame, what: str) -> float | None:
    """Nodes or arcs that power iteration handles per s: their number, times iterations, over the time of a solve."""
    iterations, seconds, count = (
        _iterations(record, "power"),
        _solve_s(samples, "power"),
        _fact(record, "graph").get(what),
    )
    return count * iterations / seconds if iterations and seconds and count else None


def input_warnings(record: Record, samples: pd.DataFrame) -> float | None:
    """Checks of the input that warned; None where nothing was checked."""
    return float(sum(found.outcome == "warn" for found in record.inputs)) if record.inputs else None


def published_arcs_per_node(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: the published number of arcs over that of nodes; `x` names both rows."""
    arcs, nodes = rows[x["arcs"]].value, rows[x["nodes"]].value
    assert arcs is not None and nodes is not None
    return arcs / nodes


def published_share(x: Mapping[str, Any], rows: Rows) -> float:
    """Metric: `part` nodes, as the source counts them, in % of the published number of nodes that `whole` names."""
    whole = rows[x["whole"]].value
    assert whole is not None
    return 100 * float(x["part"]) / whole


METRICS = [
    Metric("power_iterations", "1", "lower", launch=power_iterations),
    Metric("gauss_seidel_work", "x", "lower", launch=partial(work, method="gauss_seidel")),
    Metric("gmres_work", "x", "lower", launch=partial(work, method="gmres")),
    Metric("gauss_seidel_time", "x", "lower", launch=partial(time_ratio, method="gauss_seidel"), clocked=True),
    Metric("gmres_time", "x", "lower", launch=partial(time_ratio, method="gmres"), clocked=True),
    Metric("nodes_per_s", "nodes/s", "higher", launch=partial(per_s, what="nodes")),
    Metric("arcs_per_s", "arcs/s", "higher", launch=partial(per_s, what="arcs")),
    Metric("input_warnings", "1", "lower", launch=input_warnings),
    Metric("published_arcs_per_node", "arcs/node", None, model=published_arcs_per_node),
    Metric("published_share", "%", None, model=published_share),
]
