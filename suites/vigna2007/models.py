"""Metrics of the PageRank experiment, from a launch's facts and samples, and the arithmetic of the published rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Count, Published, RowId
from scaleproof.claims.finished_launch import median_duration_s, timed
from scaleproof.claims.made_up import Event, MadeUp, MakeUp, Wanted, possible, with_facts
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import InputCheck, Record


class ArcsAndNodes(Arguments):
    """Two rows that count the same graph."""

    arcs: RowId = Field(description="Id of the row with the number of arcs.")
    nodes: RowId = Field(description="Id of the row with the number of nodes.")


class PartOfNodes(Arguments):
    """A part of the nodes of a graph."""

    part: Count = Field(description="Nodes of the part.")
    whole: RowId = Field(description="Id of the row with the number of nodes.")


def _fact(record: Record, name: str) -> dict[str, Any]:
    fact: dict[str, Any] = record.ranks[0].facts.get(name, {}) if record.ranks else {}
    return fact


def _iterations(record: Record, method: str) -> int | None:
    iterations: int | None = _fact(record, "convergence").get("iterations", {}).get(method)
    return iterations


def power_iterations(record: Record, samples: pd.DataFrame) -> float | None:
    """Iterations of the power method until the residual is within the tolerance.

    fewest k with ‖x - G x‖₁ ≤ tolerance, x = power iteration's k-th iterate

    G is the Google matrix with damping 0.85. Teleportation and dangling mass are spread evenly, and the iteration
    starts from the uniform distribution. The count is determined before the timed region. The same graph always gives
    the same count: launches differ only because their seeds give different graphs.
    """
    return _iterations(record, "power")


def work(record: Record, samples: pd.DataFrame, method: str) -> float | None:
    """Iterations of a method over those of power iteration; each costs one product with the matrix."""
    ours, power = _iterations(record, method), _iterations(record, "power")
    if ours is None or power is None:
        return None
    return ours / power


def time_ratio(record: Record, samples: pd.DataFrame, method: str) -> float | None:
    """Time of a solve over that of power iteration in the same launch."""
    ours, power = median_duration_s(timed(samples, method)), median_duration_s(timed(samples, "power"))
    return ours / power if ours is not None and power else None


def per_s(record: Record, samples: pd.DataFrame, event: str) -> float | None:
    """Nodes or arcs that power iteration handles per s: their number, times iterations, over the time of a solve."""
    iterations, seconds, count = (
        _iterations(record, "power"),
        median_duration_s(timed(samples, "power")),
        _fact(record, "graph").get(event),
    )
    return count * iterations / seconds if iterations and seconds and count else None


def input_warnings(record: Record, samples: pd.DataFrame) -> float | None:
    """Number of input checks that ended with a warning.

    input_warnings = number of checks of the input that warned

    These are the checks D1 to D12 of [inputs.md](../inputs.md), before timing. None where nothing was checked. A
    warning says that the data are unlike the domain, not that the result is wrong.
    """
    return float(sum(finding.outcome == "warn" for finding in record.inputs)) if record.inputs else None


def published_arcs_per_node(x: ArcsAndNodes, rows: Published) -> float:
    """Published number of arcs over published number of nodes.

    published_arcs_per_node = published number of arcs / published number of nodes

    Arithmetic on published rows, not a measurement. It checks that a table agrees with itself. The claim's `x` names
    both rows.
    """
    return rows.number(x.arcs) / rows.positive(x.nodes)


def published_share(x: PartOfNodes, rows: Published) -> float:
    """Share of the published nodes that belong to a part, in %.

    published_share = 100 * nodes of a part, as the source counts them / published number of nodes

    Arithmetic on published figures, not a measurement. It checks that a table agrees with itself. The claim's `x` has
    the nodes of the part (`part`) and the row with the number of nodes (`whole`).
    """
    return 100 * x.part / rows.positive(x.whole)


def made_up_iterations(method: str, power: float = 1000.0) -> MakeUp:
    """Launches in which a method needs so many times the iterations of power iteration; of itself: so many."""

    def facts(value: float, wanted: Wanted) -> dict[str, Any]:
        iterations = {"power": power, method: possible(value) * (1.0 if method == "power" else power)}
        return {"convergence": {"iterations": iterations}}

    return with_facts(facts)


def made_up_time(method: str) -> MakeUp:
    """Launches in which a solve takes so many times that of power iteration, which takes 1 s."""

    def made_up(wanted: Wanted) -> MadeUp:
        return MadeUp((Event("power", 0.0, 1.0), Event(method, 0.0, possible(wanted.known))))

    return made_up


def made_up_rate(counted: str) -> MakeUp:
    """Launches in which one iteration over so many takes 1 s."""

    def made_up(wanted: Wanted) -> MadeUp:
        facts = {"convergence": {"iterations": {"power": 1}}, "graph": {counted: possible(wanted.known)}}
        return MadeUp((Event("power", 0.0, 1.0),), facts)

    return made_up


def made_up_warnings(wanted: Wanted) -> MadeUp:
    """A launch with so many warnings, rounded down, and one check that passed."""
    warned = int(possible(wanted.known))
    outcomes = ["warn"] * warned + ["pass"]
    parts = {"check": "D1", "dataset": "made up", "name": "made up", "value": None, "bound": ""}
    return MadeUp(inputs=tuple(InputCheck.model_validate({**parts, "outcome": outcome}) for outcome in outcomes))


METRICS = [
    Metric("power_iterations", "1", "lower", launch=power_iterations, made_up=made_up_iterations("power")),
    Metric(
        "gauss_seidel_work",
        "x",
        "lower",
        launch=partial(work, method="gauss_seidel"),
        made_up=made_up_iterations("gauss_seidel"),
        doc="""
        gauss_seidel_work = iterations of Gauss-Seidel / iterations of power iteration, in the same launch

        Both methods stop at the same 1-norm of x - G x. An iteration of either method is one pass over all links.
        Gauss-Seidel solves the linear system in the order of the node ids; another order gives another count.
        """,
    ),
    Metric(
        "gmres_work",
        "x",
        "lower",
        launch=partial(work, method="gmres"),
        made_up=made_up_iterations("gmres"),
        doc="""
        gmres_work = iterations of GMRES / iterations of power iteration, in the same launch

        Both methods stop at the same 1-norm of x - G x. An iteration of either method is one product with the matrix.
        GMRES also keeps all its directions and makes each new one orthogonal to them. This count leaves that work out:
        see [gmres_time](gmres_time.md).
        """,
    ),
    Metric(
        "gauss_seidel_time",
        "x",
        "lower",
        launch=partial(time_ratio, method="gauss_seidel"),
        made_up=made_up_time("gauss_seidel"),
        clocked=True,
        doc="""
        gauss_seidel_time = median time of a solve by Gauss-Seidel / median time by power iteration, in the same launch

        A timed solve runs exactly the iterations that the tolerance needs, without any test of convergence. Building
        the triangular matrices is not included. SciPy's matrix product and SuperLU's triangular solve, one thread.
        """,
    ),
    Metric(
        "gmres_time",
        "x",
        "lower",
        launch=partial(time_ratio, method="gmres"),
        made_up=made_up_time("gmres"),
        clocked=True,
        doc="""
        gmres_time = median time of a solve by GMRES / median time by power iteration, in the same launch

        A timed solve runs exactly the iterations that the tolerance needs, without any test of convergence. SciPy's
        GMRES, never restarted. Part of its time is spent in Python.
        """,
    ),
    Metric(
        "nodes_per_s",
        "nodes/s",
        "higher",
        launch=partial(per_s, event="nodes"),
        made_up=made_up_rate("nodes"),
        doc="""
        nodes_per_s = nodes * iterations / median time of a solve by power iteration

        Isolated nodes can inflate this rate: they count fully and cost less than other nodes. How much less depends on
        the code and the caches. Never compare the rate between graphs with different shares of isolated nodes, and
        always report [arcs_per_s](arcs_per_s.md) with it.
        """,
    ),
    Metric(
        "arcs_per_s",
        "arcs/s",
        "higher",
        launch=partial(per_s, event="arcs"),
        made_up=made_up_rate("arcs"),
        doc="""
        arcs_per_s = arcs * iterations / median time of a solve by power iteration

        An iteration moves every arc once. The rate depends on the cache: state how the arcs' bytes compare with it
        (check D2).
        """,
    ),
    Metric("input_warnings", "1", "lower", launch=input_warnings, own_count=True, made_up=made_up_warnings),
    Metric("published_arcs_per_node", "arcs/node", None, model=published_arcs_per_node, x=ArcsAndNodes),
    Metric("published_share", "%", None, model=published_share, x=PartOfNodes),
]
