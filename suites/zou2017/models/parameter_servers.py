"""Lemma 2 over launches: the rate of a parameter server, and the number of servers at the knee of a sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from scaleproof.claims.beyond_floor import FloorRange
from scaleproof.claims.finished_launch import Launch, median_duration_s, timed, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, lasting, possible
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import OwnCase

from .lemmas import fewest_servers

PEAK_SHARE = 0.95
"""The knee of a curve: the first point that reaches this share of its highest."""


def server_rate(record: Record, samples: pd.DataFrame) -> float | None:
    """server_rate = 2 S_p N_w / (N_ps median round), with workers that do not compute

    B_ps of Lemma 2 (suite zou2017): bytes that one parameter server receives and sends per second, protocol and summing
    included. With several servers it is their mean. [beyond_bound](beyond_bound.md) uses the rate of a launch with one
    server.
    """
    took = round_s(record, samples)
    if took is None or float(_options(record)["compute_ms"]):
        return None
    return 2 * float(_options(record)["nbytes"]) * float(_options(record)["workers"]) / took / _servers(record)


def beyond_bound(launches: Sequence[Launch], floor: float | None = None) -> FloorRange | None:
    """beyond_bound = knee - ceil(2 S_p N_w / (server_rate T_C))

    The difference, in servers, between the knee of a measured sweep and the number by Lemma 2 (suite zou2017). It is
    computed for one repetition of a sweep over numbers of servers. The knee is the fewest servers whose throughput is
    at least 95 % of the sweep's best. A value of 0 means that Lemma 2 predicts the right number. Noise as large as the
    machine's floor could move the knee, and the measured rate and so the bound: a claim that such a move would decide
    otherwise is inconclusive.
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
    curve, apart = {servers: 1 / took for servers, took in swept.items()}, 1 + (floor or 0.0)
    return FloorRange(
        knee(curve, PEAK_SHARE) - math.ceil(bound),
        knee(curve, PEAK_SHARE / apart) - math.ceil(bound * apart),
        knee(curve, PEAK_SHARE * apart) - math.ceil(bound / apart),
    )


def knee(curve: Mapping[int, float], share: float) -> int:
    """The first x whose y reaches this share of the highest; the last x where none does."""
    highest = max(curve.values())
    return min((x for x, y in curve.items() if y >= share * highest), default=max(curve))


def round_s(record: Record, samples: pd.DataFrame) -> float | None:
    """round_s = median time of a round over the workers, computation included

    Suite zou2017, experiment `servers`. Workers sleep for the duration of the computation while the parameters of the
    previous round travel, so a round takes as long as the longer of the two.
    """
    if not isinstance(record.case, OwnCase) or record.case.entry != "servers" or not times_count(record):
        return None
    rounds = timed(samples, "round")
    return median_duration_s(rounds[rounds["rank"] < int(_options(record)["workers"])])


def _options(record: Record) -> Mapping[str, str | int | float]:
    assert isinstance(record.case, OwnCase)
    return record.case.options


def _servers(record: Record) -> int:
    return record.case.ranks - int(_options(record)["workers"])


def made_up_server(bytes_per_s: float, wanted: Wanted) -> float:
    """A round in s of servers with this rate."""
    options = wanted.case.value("options")
    workers = float(options["workers"])
    return 2 * float(options["nbytes"]) * workers / (possible(bytes_per_s, 1e-9) * (wanted.case.ranks - workers))


def made_up_sweep(wanted: Wanted) -> MadeUp:
    """A block whose rounds all last 1 s, so that its knee is at the fewest servers, and whose server is so slow that
    the bound lies this far above it; below it is none."""
    if wanted.known > 0:
        raise ImpossibleValue("no bound lies below the fewest servers")
    if float(wanted.case.value("options")["compute_ms"]):
        return MadeUp((Event("round", 0.0, 1.0),))
    swept = [case for case in wanted.block if float(case.value("options")["compute_ms"])]
    options = swept[0].value("options")
    nbytes, workers, compute_s = (float(options[name]) for name in ("nbytes", "workers", "compute_ms"))
    bound = min(case.ranks for case in swept) - workers - round(wanted.known) - 0.5
    rate = 2 * nbytes * workers / (bound * compute_s / 1e3)
    return MadeUp((Event("round", 0.0, made_up_server(rate, wanted)),))


METRICS = [
    Metric(
        "server_rate",
        "B/s",
        "higher",
        launch=server_rate,
        link_directions=2,
        made_up=lasting("round", made_up_server),
    ),
    Metric(
        "beyond_bound",
        "servers",
        None,
        block=beyond_bound,
        clocked=True,
        noise_of=("round_s",),
        noise="inside",
        made_up=made_up_sweep,
        range=(-math.inf, math.inf),
    ),
    Metric("round_s", "s", "lower", launch=round_s, made_up=lasting("round")),
]
