"""Metrics of this paper only: its two lemmas, the memory available to convolutions, and the choice of minibatch and
algorithms as an integer program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import Bounds, LinearConstraint, milp

from scaleproof.claims.claim_form import PublishedRow
from scaleproof.claims.finished_launch import Launch, timed, times_count
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import OwnCase
from scaleproof.workloads.networks import Network

SECOND = 1e9
FLOAT = 4
"""Bytes of a float32."""
HELD = 3
"""Every parameter is held with its gradient and its momentum."""
PEAK_SHARE = 0.95
"""The knee of a curve: the first point that reaches this share of its highest."""
SHRINKS = 7
"""Number of memory bounds for the integer program, between the least that any choice needs and no bound."""
Rows = Mapping[str, PublishedRow]


# Lemma 1: number of workers


def efficiency(overhead_ratio: float, workers: float) -> float:
    """alpha = (1 + R_O) / (1 + G R_O): computation is divided over G workers, an overhead of R_O times the computation
    on one of them is not."""
    return (1 + overhead_ratio) / (1 + workers * overhead_ratio)


def largest_overhead_ratio(workers: float, alpha: float) -> float:
    """The R_O at which G workers still have the efficiency alpha."""
    return (1 - alpha) / (alpha * workers - 1)


# Lemma 2: number of parameter servers


def fewest_servers(nbytes: float, workers: float, server_rate: float, compute_s: float) -> float:
    """N_ps >= 2 S_p N_w / (B_ps T_C), not rounded: push and pull of all workers within a round's computation.
    `server_rate`: bytes/s of one server."""
    return 2 * nbytes * workers / (server_rate * compute_s)


# Minibatch and convolution algorithms


@dataclass(frozen=True, slots=True)
class Choice:
    """An algorithm per layer, in the order of the table, and their total time and memory."""

    algorithms: tuple[str, ...]
    time_s: float
    nbytes: float


Table = Sequence[Mapping[str, tuple[float, float]]]
"""For every layer: algorithm to (s, bytes of workspace)."""


def memory_left(network: Network, points: int, memory: float) -> float:
    """Bytes for the workspaces of convolutions: `memory` without feature maps, parameters and the classifier, for a
    minibatch of `points`."""
    maps = sum(math.prod(layer.output_shape) for layer in network.layers if len(layer.output_shape) == 3) + math.prod(
        network.input_shape
    )
    outputs = sum(math.prod(layer.output_shape) for layer in network.layers if len(layer.output_shape) == 1)
    return memory - FLOAT * (points * (maps + outputs) + HELD * network.parameters)


def fastest(table: Table, bound: float) -> Choice | None:
    """The fastest choice of one algorithm per layer whose workspaces together fit into `bound` bytes, by integer
    programming; None where none does."""
    names = [(layer, name) for layer, algorithms in enumerate(table) for name in algorithms]
    times = np.array([table[layer][name][0] for layer, name in names])
    memory = np.array([table[layer][name][1] for layer, name in names])
    one_each = np.array([[float(of == layer) for of, _ in names] for layer in range(len(table))])
    limit = min(bound, float(memory.sum()))
    if limit < 0:
        return None
    scale = max(limit, 1.0)
    fits = [LinearConstraint(one_each, 1, 1), LinearConstraint(memory[np.newaxis, :] / scale, -np.inf, limit / scale)]
    answer = milp(
        times / times.max(),
        constraints=fits,
        integrality=np.ones(len(names)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if answer.x is None:
        return None
    return _choice(table, [name for (_, name), taken in zip(names, answer.x, strict=True) if taken > 0.5])


def by_brute_force(table: Table, bound: float) -> Choice | None:
    """The same result, by trying all choices."""
    choices = (_choice(table, names) for names in product(*table))
    return min((choice for choice in choices if choice.nbytes <= bound), key=lambda choice: choice.time_s, default=None)


def best_minibatch(tables: Mapping[int, Table], bounds: Mapping[int, float]) -> tuple[int, Choice] | None:
    """The paper's procedure: the fastest choice for every candidate minibatch, then the candidate with the most samples
    per second."""
    candidates = {
        points: choice for points, table in tables.items() if (choice := fastest(table, bounds[points])) is not None
    }
    return max(candidates.items(), key=lambda item: item[0] / item[1].time_s, default=None)


def _choice(table: Table, names: Sequence[str]) -> Choice:
    taken = [table[layer][name] for layer, name in enumerate(names)]
    return Choice(tuple(names), sum(time_s for time_s, _ in taken), sum(nbytes for _, nbytes in taken))


def least_memory(table: Table) -> float:
    """Bytes below which no choice fits."""
    return sum(min(nbytes for _, nbytes in algorithms.values()) for algorithms in table)


def bounds_of(table: Table) -> list[float]:
    """Memory bounds: none, then from the memory of the fastest choice down to the least that any choice needs."""
    free, least = fastest(table, math.inf), least_memory(table)
    most = free.nbytes if free else least
    return [math.inf, *(least + (most - least) * step / SHRINKS for step in reversed(range(SHRINKS)))]


# Metrics over launches


def overhead_ratio(record: Record, samples: pd.DataFrame) -> float | None:
    """overhead_ratio = median step / median computation - 1, on one worker

    R_O of Lemma 1 (suite zou2017): what a step takes beyond its computation, as a share of the computation. What is
    overlapped is not in it. Defined on launches with one rank only.
    """
    step, compute = _median_s(record, samples, "step"), _median_s(record, samples, "compute")
    return step / compute - 1 if step and compute and record.case.ranks == 1 else None


def over_lemma1(launch: Launch, base: Launch) -> float | None:
    """over_lemma1 = (t_1 / t_G / G) / ((1 + R_O) / (1 + G R_O))

    Efficiency measured with G workers over the efficiency that Lemma 1 (suite zou2017) gives for the overhead ratio of
    the one-worker launch of the same repetition. t: median step. 1 is a perfect prediction; what the lemma leaves out
    (barriers, shared caches) makes it smaller.
    """
    base_s, many_s = _median_s(base.record, base.samples, "step"), _median_s(launch.record, launch.samples, "step")
    ratio, workers = overhead_ratio(base.record, base.samples), launch.record.case.ranks
    if not base_s or not many_s or ratio is None:
        return None
    return base_s / many_s / workers / efficiency(ratio, workers)


def server_rate(record: Record, samples: pd.DataFrame) -> float | None:
    """server_rate = 2 S_p N_w / (N_ps median round), with workers that do not compute

    B_ps of Lemma 2 (suite zou2017): bytes that one parameter server takes and gives per second, protocol and summing
    included. Of several servers it is the mean. [beyond_bound](beyond_bound.md) takes that of a launch with one.
    """
    took = round_s(record, samples)
    if took is None or float(_options(record)["compute_ms"]):
        return None
    return 2 * float(_options(record)["nbytes"]) * float(_options(record)["workers"]) / took / _servers(record)


def beyond_bound(launches: Sequence[Launch]) -> float | None:
    """beyond_bound = knee - ceil(2 S_p N_w / (server_rate T_C))

    Of one repetition of a sweep over numbers of servers (suite zou2017). knee: the fewest servers whose throughput is
    at least 95 % of the sweep's best. 0: Lemma 2 names the right number.
    """
    rates = [
        rate
        for launch in launches
        if _servers(launch.record) == 1 and (rate := server_rate(launch.record, launch.samples))
    ]
    swept = {
        _servers(launch.record): took
        for launch in launches
        if float(_options(launch.record)["compute_ms"]) and (took := round_s(launch.record, launch.samples))
    }
    if not rates or len(swept) < 2:
        return None
    options = next(_options(launch.record) for launch in launches if float(_options(launch.record)["compute_ms"]))
    bound = fewest_servers(
        float(options["nbytes"]), float(options["workers"]), rates[0], float(options["compute_ms"]) / 1e3
    )
    return knee({servers: 1 / took for servers, took in swept.items()}) - math.ceil(bound)


def knee(curve: Mapping[int, float]) -> int:
    """The first x whose y reaches PEAK_SHARE of the highest."""
    highest = max(curve.values())
    return min(x for x, y in curve.items() if y >= PEAK_SHARE * highest)


def round_s(record: Record, samples: pd.DataFrame) -> float | None:
    """round_s = median time of a round over the workers, computation included

    Suite zou2017, experiment `servers`: computation is slept while the parameters of the round before travel, so a
    round is the longer of the two.
    """
    if not isinstance(record.case, OwnCase) or record.case.entry != "servers":
        return None
    return _median_s(record, samples[samples["rank"] < int(_options(record)["workers"])], "round")


def ilp_difference(record: Record, samples: pd.DataFrame) -> float | None:
    """ilp_difference = largest of | time by the integer program / time by brute force - 1 |

    Over all minibatches of the launch and eight memory bounds each, from none to the least that any choice needs
    (suite zou2017). Both choose from the same measured times and workspaces.
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

    At the launch's largest minibatch (suite zou2017).
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

    Over all minibatches of the launch (suite zou2017).
    """
    pairs = [
        (name, min(algorithms, key=lambda name: algorithms[name][0]))
        for table in tables(record, samples).values()
        if (choice := fastest(table, math.inf))
        for name, algorithms in zip(choice.algorithms, table, strict=True)
    ]
    return sum(name == best for name, best in pairs) / len(pairs) if pairs else None


def ilp_minibatch(record: Record, samples: pd.DataFrame, tight: bool) -> float | None:
    """The minibatch that the procedure chooses: without a bound, or with the memory that the smallest candidate just
    needs."""
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


# Metrics of arithmetic


def max_overhead_ratio(x: Mapping[str, Any], rows: Rows) -> float:
    """max_overhead_ratio = (1 - alpha) / (alpha G - 1)

    Lemma 1 (suite zou2017) solved for R_O: up to this overhead ratio G workers have the efficiency alpha. Arithmetic,
    no launches.
    The row's `x` has gpus and alpha.
    """
    return largest_overhead_ratio(x["gpus"], x["alpha"])


def lemma1_speedup(x: Mapping[str, Any], rows: Rows) -> float:
    """lemma1_speedup = G (1 + R_O) / (1 + G R_O)

    Lemma 1 (suite zou2017). Its limit for many workers is (1 + R_O) / R_O. Arithmetic, no launches.
    The row's `x` has gpus and R_O.
    """
    return float(x["gpus"] * efficiency(x["R_O"], x["gpus"]))


def min_parameter_servers(x: Mapping[str, Any], rows: Rows) -> float:
    """min_parameter_servers = 2 S_p N_w / (B_ps T_C), not rounded

    Lemma 2 (suite zou2017): S_p bytes of parameters, N_w workers, B_ps bytes/s of a server, T_C s of computation per
    round. It assumes an even spread, no incast, and worker links that are not full. Arithmetic, no launches.
    The row's `x` has workers, S_p_MB, B_GBps and T_C_s.
    """
    return fewest_servers(x["S_p_MB"] * 1e6, x["workers"], x["B_GBps"] * 1e9, x["T_C_s"])


def lemma_rows_off(x: Mapping[str, Any], rows: Rows) -> float:
    """lemma_rows_off = derived rows of zou2017 whose printed digits our functions do not give

    Arithmetic, no launches.
    """
    models = {
        "max_overhead_ratio": max_overhead_ratio,
        "speedup": lemma1_speedup,
        "min_parameter_servers": min_parameter_servers,
    }
    derived = [row for row in rows.values() if row.provenance == "derived"]
    return float(
        sum(
            f"{models[row.metric](row.x, rows):.{_digits(row.value)}f}" != f"{row.value:.{_digits(row.value)}f}"
            for row in derived
        )
    )


def _digits(value: float | int | None) -> int:
    return len(str(value).partition(".")[2])


def _options(record: Record) -> Mapping[str, str | int | float]:
    assert isinstance(record.case, OwnCase)
    return record.case.options


def _servers(record: Record) -> int:
    return record.case.ranks - int(_options(record)["workers"])


def _median_s(record: Record, samples: pd.DataFrame, event: str) -> float | None:
    rows = timed(samples, event)
    return float((rows["end_ns"] - rows["start_ns"]).median()) / SECOND if len(rows) and times_count(record) else None


METRICS = [
    Metric("overhead_ratio", "1", "lower", launch=overhead_ratio, clocked=True),
    Metric("over_lemma1", "1", None, pair=over_lemma1, clocked=True),
    Metric("server_rate", "B/s", "higher", launch=server_rate),
    Metric("beyond_bound", "servers", None, block=beyond_bound, clocked=True),
    Metric("round_s", "s", "lower", launch=round_s),
    Metric("ilp_difference", "1", None, launch=ilp_difference),
    Metric("ilp_changed_layers", "layers", None, launch=ilp_changed_layers),
    Metric("ilp_fastest_share", "fraction", "higher", launch=ilp_fastest_share),
    Metric(
        "ilp_minibatch",
        "points",
        None,
        launch=partial(ilp_minibatch, tight=False),
        doc="""
        ilp_minibatch = the minibatch X with the largest X / (time of the fastest choice at X)

        Without a memory bound, among the minibatches of the launch (suite zou2017). Times are of the convolutions'
        forward pass only.
        """,
    ),
    Metric(
        "ilp_tight_minibatch",
        "points",
        None,
        launch=partial(ilp_minibatch, tight=True),
        doc="""
        ilp_tight_minibatch = the same with no more memory for workspaces than the smallest candidate needs

        See [ilp_minibatch](ilp_minibatch.md).
        """,
    ),
    Metric("max_overhead_ratio", "fraction", None, model=max_overhead_ratio),
    Metric("lemma1_speedup", "x", "higher", model=lemma1_speedup),
    Metric("min_parameter_servers", "servers", None, model=min_parameter_servers),
    Metric("lemma_rows_off", "rows", "lower", model=lemma_rows_off),
]
