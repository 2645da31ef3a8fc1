"""What the integer program chooses from the times and workspaces of a launch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pandas as pd

from scaleproof.claims.beyond_floor import FloorRange, sign
from scaleproof.claims.finished_launch import SECOND, Launch
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


def ilp_changed_layers(block: Sequence[Launch], floor: float | None = None) -> FloorRange | None:
    """Layers for which the memory bound costs time: under the least bound they get an algorithm that is slower than
    their fastest one.

    ilp_changed_layers = layers whose algorithm under the least bound is slower than the one without a bound by more
    than the noise floor

    Both choices are for the launch's largest minibatch. The least bound is the least memory with which any choice fits
    (suite zou2017). The floor is that of [shortest_convolution_s](shortest_convolution_s.md). A layer with another
    algorithm within the floor does not count, but noise could have hidden its change: a claim that only such layers
    keep from holding is inconclusive.
    """
    changes = [changed for launch in block for changed in _changes(launch, floor)]
    if not changes:
        return None
    certain, undecided = (float(changes.count(kind)) for kind in (True, None))
    return FloorRange(certain, certain, certain + undecided)


def _changes(launch: Launch, floor: float | None) -> Iterator[bool | None]:
    """Of each layer whether the least memory bound makes it slower; None where the floor does not tell."""
    by_minibatch = tables(launch.record, launch.samples)
    if not by_minibatch:
        return
    table = by_minibatch[max(by_minibatch)]
    tight = fastest(table, least_memory(table))
    if tight is not None:
        yield from (_slower(name, of_layer, floor) for name, of_layer in zip(tight.algorithms, table, strict=True))


def _slower(name: str, algorithms: Mapping[str, tuple[float, float]], floor: float | None) -> bool | None:
    """Whether an algorithm takes longer than the fastest one by more than the floor; None where another one takes as
    long, or where it is the fastest by no more than the floor."""
    signs = [sign(algorithms[name][0], time_s, floor) for other, (time_s, _) in algorithms.items() if other != name]
    return True if 1 in signs else (None if 0 in signs else False)


def shortest_convolution_s(record: Record, samples: pd.DataFrame) -> float | None:
    """shortest_convolution_s = least time over layers and algorithms, at the launch's largest minibatch

    The times are medians over the calls of a launch (suite zou2017). Short times are the noisiest, so the noise floor
    of this metric is used for the choice of algorithms ([ilp_changed_layers](ilp_changed_layers.md)).
    """
    by_minibatch = tables(record, samples)
    if not by_minibatch:
        return None
    return min(time_s for algorithms in by_minibatch[max(by_minibatch)] for time_s, _ in algorithms.values())


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


def made_up_convolution(wanted: Wanted) -> MadeUp:
    """A launch of one layer, with one algorithm."""
    return MadeUp((Event("conv.fast", 0.0, possible(wanted.known), value=1.0),))


METRICS = [
    Metric("ilp_difference", "1", None, launch=ilp_difference, own_count=True),
    Metric(
        "ilp_changed_layers",
        "layers",
        None,
        block=ilp_changed_layers,
        made_up=made_up_layers,
        clocked=True,
        noise_of=("shortest_convolution_s",),
        noise="inside",
    ),
    Metric("shortest_convolution_s", "s", "lower", launch=shortest_convolution_s, made_up=made_up_convolution),
    Metric("ilp_fastest_share", "fraction", "higher", launch=ilp_fastest_share, own_count=True),
    Metric(
        "ilp_minibatch",
        "points",
        None,
        launch=partial(ilp_minibatch, tight=False),
        clocked=True,
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
        clocked=True,
        doc="""
        ilp_tight_minibatch = the minibatch X with the largest X / (time of the fastest choice at X), within a memory
        bound

        The bound on the memory for workspaces is what the minibatch with the lowest need requires. Everything else is
        as in [ilp_minibatch](ilp_minibatch.md), which has no bound.
        """,
    ),
]
