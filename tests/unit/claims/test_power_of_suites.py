"""Every claim of every suite can fall both ways with the launches that each size plans: made-up launches that clearly
hold it are reproduced, such that clearly fail it are not; claims about every case are failed in one case alone. Spread
and noise floor are those of the reference run."""

from __future__ import annotations

import csv
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import norm

from scaleproof.claims.claim_form import ORDERS
from scaleproof.claims.claims_yaml import Claim, load_claims
from scaleproof.claims.decidable import undecidable
from scaleproof.claims.noise_floor import compares_single_launches
from scaleproof.claims.power import Launches, Noise, Power, unjudged
from scaleproof.claims.wanted_values import stated_effect
from scaleproof.core.record_schema import Evidence
from scaleproof.record.machine import WITHIN_95_PERCENT, floor_of_launches
from scaleproof.spec.suite import Suite, load_suite
from scaleproof.stats.intervals import median_interval, smallest_count

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "results" / "reference"
SUITES = sorted(path.parent.name for path in (ROOT / "suites").glob("*/claims.yaml") if path.parent.name[0] != "_")
SIZES = ("smoke", "small", "full")
LEFT_OUT = (
    "context: shown, never judged",
    "recalled: the published value is known from memory only",
    "the published value was not recovered",
    "arithmetic: no launches",
    "unserved: needs",
)
"""Why a claim has no launches that could decide it."""
CANNOT_FALL: dict[str, str] = {
    "zou2017.own.ilp.brute_force": "an identity of our code: only a broken integer program differs from brute force",
    "zou2017.own.ilp.cudnn": "the same on a GPU",
    "zou2017.own.ilp.unbounded": "an identity of our code: without a bound the fastest is chosen, or it is broken",
}
"""Entries that no launch of working code can refute, each with the reason."""
FLOOR_OF_SPREAD = WITHIN_95_PERCENT * math.sqrt(2) * 1.2533 / math.sqrt(6)
"""1.42: the logarithm of 1 + the noise floor of two arms of 6 launches, in standard deviations of one launch. The
median of n normal values has about 1.2533 / sqrt(n) standard deviations of one, and a difference of two sqrt(2) times
that."""
FLOOR_OF_ONE_LAUNCH = WITHIN_95_PERCENT * math.sqrt(2)
"""The same of the floor of one launch."""


@pytest.mark.parametrize("name", SUITES)
def test_every_claim_falls_both_ways_with_the_launches_of_each_size(name: str) -> None:
    suite = load_suite(name, ROOT / "suites")
    sizes = [Launches(suite, size) for size in SIZES]
    wrong = []
    for claim in load_claims(suite):
        if unjudged(claim, "full") is None and claim.form.id not in CANNOT_FALL:
            wrong += [f"{where(suite, claim)}: {problem}" for problem in problems(claim, sizes)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", SUITES)
def test_entries_without_launches_are_left_out_for_a_reason_of_their_kind(name: str) -> None:
    for claim in load_claims(load_suite(name, ROOT / "suites")):
        reason = unjudged(claim, "full")
        assert reason is None or reason.startswith(LEFT_OUT), f"{claim.form.id}: {reason}"
        assert unjudged(claim, "ci") == "this size judges nothing"


def test_every_order_that_launches_decide_states_its_effect() -> None:
    orders = [claim for name in SUITES for claim in load_claims(load_suite(name, ROOT / "suites")) if is_order(claim)]
    assert orders and [claim.form.id for claim in orders if stated_effect(claim) is None] == []


def is_order(claim: Claim) -> bool:
    rule, metric = claim.form.rule, claim.metric
    decided = unjudged(claim, "full") is None and metric is not None and metric.noise != "inside"
    return decided and rule is not None and rule.name in ORDERS


def test_an_entry_that_cannot_fall_exists() -> None:
    ids = {claim.form.id for name in SUITES for claim in load_claims(load_suite(name, ROOT / "suites"))}
    assert set(CANNOT_FALL) <= ids


@pytest.mark.parametrize(("suite", "claim"), [("das2016", "own.hybrid.bytes"), ("taxonomy", "langer.delay.ring")])
def test_one_case_that_fails_refutes_a_claim_about_every_case(suite: str, claim: str) -> None:
    launches = Launches(load_suite(suite, ROOT / "suites"), "small")
    found = next(each for each in load_claims(launches.suite) if each.form.id == f"{suite}.{claim}")
    (evidence,) = launches.evidences(found)
    power = launches.power(found, evidence, Noise())
    assert power.both_ways and re.match(r"not reproduced in 1 of \d+ cases", power.fails[1]), power.fails


def problems(claim: Claim, sizes: list[Launches]) -> list[str]:
    """Sizes at which the claim does not fall both ways; one of them must have launches of it."""
    found, known = [], dict[Any, Power]()
    for launches in sizes:
        for evidence in launches.evidences(claim):
            count, cases = launches.count(claim, evidence), launches.cases(claim, evidence)
            key = evidence, count, frozenset(case.case_id for case in cases)  # some sizes plan the same for a claim
            if key in known:
                continue
            known[key] = launches.power(claim, evidence, decidable_noise(launches, claim, evidence))
            if count < (needed := launches.for_a_verdict(claim, evidence)):
                found.append(f"{launches.size} plans {count} launches, {needed} are needed")
            elif not known[key].both_ways:
                found.append(f"{launches.size}, {known[key]}")
    return found if known else ["no size plans the launches that decide it"]


def decidable_noise(launches: Launches, claim: Claim, evidence: Evidence) -> Noise:
    """That of the reference run; a quiet machine's where a dry run says that the claim cannot be decided with it."""
    noise = reference_noise(launches.suite.name, claim, str(evidence))
    told = undecidable(claim, launches, lambda *_: noise)
    return Noise() if any(found.evidence == evidence and found.resolution for found in told) else noise


def reference_noise(suite: str, claim: Claim, evidence: str) -> Noise:
    """Spread of launches and noise floor of the reference run; a quiet machine's where it has none."""
    row = reference(suite).get((claim.form.id, evidence), {})
    low, high = float(row.get("low") or 0.0), float(row.get("high") or 0.0)
    noise, metric, floor = Noise(), claim.metric, float(row.get("noise_floor") or 0.0)
    assert metric is not None
    if metric.apart is None and not compares_single_launches(metric, claim.form.rule):
        floor = of_fewest_launches(floor, int(row.get("launches") or 0))
    if not floor and claim.form.rule is not None and claim.form.rule.tolerance == "floor":
        return noise
    spread = noise.spread
    if claim.form.over or metric.apart is not None or math.isfinite(metric.possible[1]):
        # an interval of conditions, of cases, or of what is bounded shows no spread of launches
        single = compares_single_launches(metric, claim.form.rule)
        spread = math.log1p(floor) / (FLOOR_OF_ONE_LAUNCH if single else FLOOR_OF_SPREAD) if floor else noise.spread
    elif 0 < low < high:
        spread = math.log(high / low) / width(int(row["launches"]))
    return Noise(spread, floor or noise.floor)


def of_fewest_launches(floor: float, launches: int) -> float:
    """The floor of the fewest launches that give a verdict, from that of so many, as a verdict states it."""
    return math.expm1(math.log1p(floor) * math.sqrt(max(launches, smallest_count()) / smallest_count()))


def width(launches: int) -> float:
    """Expected distance between the ends of the interval of a median, in standard deviations of one launch. The ends
    are two of the ordered values, up to 8 launches the smallest and the largest; Blom's approximation of the k-th of n
    normal values is norm.ppf((k - 0.375) / (n + 0.25))."""
    ends = median_interval(range(1, launches + 1))
    low, high = (ends.low, ends.high) if ends else (1, launches)
    return float(norm.ppf((high - 0.375) / (launches + 0.25)) - norm.ppf((low - 0.375) / (launches + 0.25)))


@pytest.mark.parametrize(("launches", "expected"), [(6, 2.563), (8, 2.868), (9, 1.864), (12, 1.583)])
def test_the_width_of_an_interval_depends_on_the_launches(launches: int, expected: float) -> None:
    assert width(launches) == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize("launches", [6, 7, 8, 20])
def test_the_floor_of_the_fewest_launches_gives_back_that_of_a_verdict(launches: int) -> None:
    assert floor_of_launches(of_fewest_launches(0.1, launches), 6, launches) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("suite", "claim", "spread"),
    [
        ("awan2019", "own.one_rank", math.log(1.2 / 1.0) / 2.563),
        ("taxonomy", "langer.delay.ring", math.log(1.1) / 1.418),
        ("awan2019", "insight.nogrpc", math.log(1.1) / 2.772),
    ],
)
def test_the_spread_is_that_of_the_interval_or_of_the_floor(
    monkeypatch: pytest.MonkeyPatch, suite: str, claim: str, spread: float
) -> None:
    row = {"low": "1.0", "high": "1.2", "launches": "6", "noise_floor": "0.1"}
    monkeypatch.setitem(globals(), "reference", lambda _: {(f"{suite}.{claim}", "measured"): row})
    found = next(each for each in load_claims(load_suite(suite, ROOT / "suites")) if each.form.id == f"{suite}.{claim}")
    noise = reference_noise(suite, found, "measured")
    assert (noise.spread, noise.floor) == (pytest.approx(spread, rel=1e-3), 0.1)


@cache
def reference(suite: str) -> dict[tuple[str, str], dict[str, str]]:
    """Rows of its verdicts by claim and evidence."""
    path = REFERENCE / f"{suite}.verdicts.csv"
    if not path.exists():
        return {}
    with path.open() as file:
        return {(row["id"], row["evidence"]): row for row in csv.DictReader(file)}


def where(suite: Suite, claim: Claim) -> str:
    """File and line of a claim."""
    lines = (suite.folder / "claims.yaml").read_text().splitlines()
    number = next(index for index, line in enumerate(lines, 1) if f"id: {claim.form.id}" in line)
    return f"suites/{suite.name}/claims.yaml:{number}: {claim.form.id}"
