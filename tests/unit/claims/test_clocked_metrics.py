"""What comes from clocks is a timing. In made-up launches the times of one rank, or of one event, are stretched:
whatever changes with them must be marked, so that it is judged with a noise floor and without oversubscribed
launches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from scaleproof.claims.beyond_floor import FloorRange
from scaleproof.claims.claims_yaml import Claim, load_claims
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.made_up import ImpossibleValue, Wanted
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.spec.case import AnyCase
from scaleproof.spec.suite import Suite, load_suite
from tests.short_form import case_from
from tests.unit.claims.claims_samples import PROGRAM_CASES

SUITES = Path(__file__).parents[3] / "suites"
WITH_METRICS = sorted({path.relative_to(SUITES).parts[0] for path in SUITES.glob("[a-z]*/models*")})
HARNESS = "harness"
STRETCH = 3
WANTED = (3.0, 0.25, 1.0, 0.0)
"""Values to try, since no launch may have one of them."""
EXAMPLES = 3
"""Made-up launches of a metric that are looked at."""
NOT_MADE_UP = {"packets_per_tensor"}
"""Counts of which no launch can be made up: interfaces of two nodes count them."""


@dataclass(frozen=True)
class Example:
    """Launches that a metric takes together, the base of a pair last, and a message size."""

    launches: tuple[Launch, ...]
    nbytes: int | None


@pytest.mark.parametrize("name", [HARNESS, *WITH_METRICS])
def test_what_changes_with_the_times_of_a_rank_or_an_event_is_a_timing(name: str) -> None:
    metrics = of(name)
    unmarked = {metric.name: metric for metric in metrics.values() if not metric.timing}
    found = {metric.name: examples(name, metric, metrics) for metric in unmarked.values()}
    assert {name for name, made in found.items() if not made} <= NOT_MADE_UP
    assert [name for name, made in found.items() if any(is_clocked(unmarked[name], example) for example in made)] == []


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("crosscheck", "rank0_excess"),
        ("crosscheck", "common_wall_over_known"),
        ("zou2017", "ilp_changed_layers"),
    ],
)
def test_a_number_without_a_unit_that_comes_from_clocks_is_seen(suite: str, name: str) -> None:
    metrics = of(suite)
    assert any(is_clocked(metrics[name], example) for example in examples(suite, metrics[name], metrics))


@cache
def of(name: str) -> dict[str, Metric]:
    """The metrics over launches of a suite alone, or of the harness."""
    added = METRICS if name == HARNESS else {k: v for k, v in suite_metrics(SUITES / name).items() if k not in METRICS}
    return {name: metric for name, metric in added.items() if not metric.model and not metric.ratio_of}


def examples(name: str, metric: Metric, metrics: Mapping[str, Metric]) -> list[Example]:
    """Launches of which the metric has a value: those of its own generator, or of the others where it has none."""
    made = (
        example
        for maker in ([metric] if metric.made_up else metrics.values())
        for cases in cases_of(name, maker)
        if (example := first_made(maker, cases)) is not None and value_of(metric, example) is not None
    )
    return list(islice(made, EXAMPLES))


@cache
def claims_of(name: str) -> tuple[Suite, list[Claim]]:
    suite = load_suite(SUITES / name)
    return suite, load_claims(suite)


def cases_of(name: str, maker: Metric) -> Iterator[tuple[AnyCase, ...]]:
    """Cases that a metric takes together: those that a claim with it selects, each alone unless it is of blocks."""
    if name == HARNESS:
        yield from ((case_from(short),) for short in PROGRAM_CASES)
        return
    suite, claims = claims_of(name)
    for form in (claim.form for claim in claims if claim.form.metric == maker.name and claim.form.experiment):
        largest = list(suite.experiment(str(form.experiment)).sizes.values())[-1]
        sides = [{**form.select, **arm} for arm in form.arms] or [form.select]
        cases = tuple(case for case in largest.cases if any(chosen(case, side) for side in sides))
        yield from [cases] if maker.block else ((case,) for case in cases)


def first_made(maker: Metric, cases: tuple[AnyCase, ...]) -> Example | None:
    """Launches of the cases with the first value that they can have."""
    sizes = [size for size in cases[0].value("sizes") or () if size] if cases else []
    nbytes = sizes[-1] if sizes else None
    for wanted in WANTED if maker.made_up and cases and (maker.size is None or nbytes) else ():
        values = [wanted, None] if maker.pair else [wanted]
        try:
            launches = [launch_of(maker, Wanted(case, value, nbytes, cases)) for case in cases for value in values]
        except ImpossibleValue:
            continue
        return Example(tuple(launches), nbytes)
    return None


def launch_of(maker: Metric, wanted: Wanted) -> Launch:
    assert maker.made_up is not None
    made = maker.made_up(wanted)
    return Launch(made.record(wanted.case), made.samples(wanted.case.ranks), lambda: made.parameters)


def value_of(metric: Metric, example: Example) -> float | None:
    first, nbytes = example.launches[0], example.nbytes
    if metric.launch is not None:
        return metric.launch(first.record, first.samples)
    if metric.size is not None:
        return None if nbytes is None else metric.size(first.record, first.samples, nbytes)
    if metric.pair is not None:
        return metric.pair(first, example.launches[-1], None)
    value = metric.block(example.launches, None) if metric.block is not None else None
    return None if value is None else FloorRange.of(value).value


def is_clocked(metric: Metric, example: Example) -> bool:
    """Whether the value changes where some times do."""
    before = value_of(metric, example)
    assert before is not None
    for stretched in variants(example):
        after = value_of(metric, stretched)
        if after is None or not math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-12):
            return True
    return False


def variants(example: Example) -> Iterator[Example]:
    """In turn, with the times of one rank or of one event of one launch stretched."""
    for place, launch in enumerate(example.launches):
        for column in ("rank", "event"):
            for value in launch.samples[column].unique():
                samples = launch.samples.copy()
                samples.loc[samples[column] == value, ["start_ns", "end_ns"]] *= STRETCH
                changed = Launch(launch.record, samples, launch.parameters)
                others = example.launches
                yield Example((*others[:place], changed, *others[place + 1 :]), example.nbytes)
