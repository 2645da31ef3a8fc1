"""What the integer program chooses from the times and workspaces of a launch."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd

from scaleproof.claims.finished_launch import SECOND
from scaleproof.claims.made_up import Event, MadeUp, Wanted, possible
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record

from .algorithm_choice import best_minibatch, bounds_of, by_brute_force, fastest, least_memory


def ilp_difference(record: Record, samples: pd.DataFrame) -> float | None:
    """ilp_difference = largest of | time by the integer program / time by brute force - 1 |

    The largest is taken over all minibatches of the launch and eight memory bounds for each, from no bound to the least
    memory that any choice needs (suite zou2017). The integer program and brute force choose from the same measured
    times and workspaces.
    """
    differences = [
        abs(ours.time_s / theirs.time_s - 1)
        for table in tables(record, samples).values()
        for bound in bounds_of(table)
        if (ours := fastest(table, bound)) and (theirs := by_brute_force(table, bound))
    ]
    return max(differences, default=None)


def ilp_changed_layers(record: Record, samples: pd.DataFrame) -> float | None:
    """ilp_changed_layers = layers whose algorithm differs between no memory bound and the least bound

    Both choices are for the launch's largest minibatch. The least bound is the least memory with which any choice fits
    (suite zou2017).
    """
    by_minibatch = tables(record, samples)
    if not by_minibatch:
        return None
    table = by_minibatch[max(by_minibatch)]
    free, tight = fastest(table, math.inf), fastest(table, least_memory(table))
    return (
        None
        if free is None or tight is None
        else float(sum(a != b for a, b in zip(free.algorithms, tight.algorithms, strict=True)))
    )


def ilp_fastest_share(record: Record, samples: pd.DataFrame) -> float | None:
    """ilp_fastest_share = layers that get their fastest algorithm without a memory bound / layers

    Layers of all minibatches of the launch count (suite zou2017).
    """
    pairs = [
        (name, min(algorithms, key=lambda name: algorithms[name][0]))
        for table in tables(record, samples).values()
        if (choice := fastest(table, math.inf))
        for name, algorithms in zip(choice.algorithms, table, strict=True)
    ]
    return sum(name == best for name, best in pairs) / len(pairs) if pairs else None


def ilp_minibatch(record: Record, samples: pd.DataFrame, tight: bool) -> float | None:
    """The minibatch that the paper's procedure chooses, without a bound or (`tight`) with the least memory that any
    candidate needs."""
    by_minibatch = tables(record, samples)
    if not by_minibatch:
        return None
    bound = min(map(least_memory, by_minibatch.values())) if tight else math.inf
    best = best_minibatch(by_minibatch, dict.fromkeys(by_minibatch, bound))
    return None if best is None else float(best[0])


def tables(record: Record, samples: pd.DataFrame) -> dict[int, list[dict[str, tuple[float, float]]]]:
    """By minibatch: medians of time and workspace of every algorithm at every layer."""
    rows = samples[~samples["warmup"] & samples["event"].astype(str).str.startswith("conv.")]
    rows = rows.assign(event=rows["event"].astype(str), took=(rows["end_ns"] - rows["start_ns"]) / SECOND)
    by_minibatch: dict[int, list[dict[str, tuple[float, float]]]] = {}
    for (points, layer, event), part in rows.groupby(["value", "step", "event"]):
        layers = by_minibatch.setdefault(int(points), [])
        layers += [{} for _ in range(int(layer) + 1 - len(layers))]
        layers[int(layer)][str(event).removeprefix("conv.")] = (
            float(part["took"].median()),
            float(part["nbytes"].median()),
        )
    return by_minibatch


def made_up_layers(wanted: Wanted) -> MadeUp:
    """A launch of so many layers, rounded down, with a fast algorithm that needs memory and a slow one that needs none;
    and of one layer with the slow one alone."""
    slow = [Event("conv.slow", 0.0, 2.0, step=layer, value=1.0) for layer in range(int(possible(wanted.known)) + 1)]
    fast = [Event("conv.fast", 0.0, 1.0, step=event.step + 1, nbytes=1024, value=1.0) for event in slow[:-1]]
    return MadeUp((*slow, *fast))


METRICS = [
    Metric("ilp_difference", "1", None, launch=ilp_difference, own_count=True),
    Metric("ilp_changed_layers", "layers", None, launch=ilp_changed_layers, made_up=made_up_layers),
    Metric("ilp_fastest_share", "fraction", "higher", launch=ilp_fastest_share, own_count=True),
    Metric(
        "ilp_minibatch",
        "points",
        None,
        launch=partial(ilp_minibatch, tight=False),
        doc="""
        ilp_minibatch = the minibatch X with the largest X / (time of the fastest choice at X)

        The choice is among the minibatches of the launch, without a memory bound (suite zou2017). Times are those of
        the convolutions' forward pass only.
        """,
    ),
    Metric(
        "ilp_tight_minibatch",
        "points",
        None,
        launch=partial(ilp_minibatch, tight=True),
        doc="""
        ilp_tight_minibatch = the minibatch X with the largest X / (time of the fastest choice at X), within a memory
        bound

        The bound on the memory for workspaces is what the minibatch with the lowest need requires. Everything else is
        as in [ilp_minibatch](ilp_minibatch.md), which has no bound.
        """,
    ),
]
