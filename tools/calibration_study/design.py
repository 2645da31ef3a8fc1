"""The launches of the study and the arithmetic on their values: one value per launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from scaleproof.calibrate.calibration_run import suite
from scaleproof.calibrate.measured_noise_floors import floor_share, spread
from scaleproof.claims.finished_launch import timed
from scaleproof.launch.sequential_stopping import finished_launches
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.stats.compare_arms import compare, detectable
from scaleproof.stats.intervals import smallest_count

EXPERIMENT, SIZE, METRIC = "study", "full", "median time of a digest in s"
SAME, SLOWED = 200, 100
"""Comparisons of identical arms, and of one against the slowed one; the latter share the base arm's launches with the
first of the former."""
FEWEST = smallest_count()
"""Launches an arm of the comparisons of identical arms that have no slowed one beside them: the fewest that give a
verdict."""
FLOOR_BLOCKS = 30
"""Blocks before all comparisons; the noise floor comes from these alone."""
SLOWDOWN, STATED, WANTED = 0.05, 0.05, 0.95
DEADLINE_S = 30.0
ARMS = ("a", "b", "slowed")


@dataclass(frozen=True, slots=True)
class Values:
    """Seconds per launch of each arm; element k is from block k. The first 100 comparisons take `launches` per arm, the
    others FEWEST."""

    launches: int
    arms: dict[str, list[float]]

    def floor(self, launches: int) -> tuple[float, float]:
        """Noise floor for a comparison of `launches` per arm, and the spread of one launch; both from the first
        blocks."""
        first, second = (np.array(self.arms[arm][:FLOOR_BLOCKS]) for arm in ("a", "b"))
        return floor_share(first, second, launches), spread(first, second)

    def comparison(self, arm: str, number: int) -> tuple[list[float], list[float]]:
        """The values of an arm and of the base, block by block."""
        start = FLOOR_BLOCKS + min(number, SLOWED) * self.launches + max(number - SLOWED, 0) * FEWEST
        blocks = slice(start, start + (self.launches if number < SLOWED else FEWEST))
        return self.arms[arm][blocks], self.arms["a"][blocks]


def repetitions(launches: int) -> dict[str, int]:
    """Launches by arm."""
    slowed = FLOOR_BLOCKS + SLOWED * launches
    same = slowed + (SAME - SLOWED) * FEWEST
    return {"a": same, "b": same, "slowed": slowed}


def planned(launches: int) -> list[PlannedLaunch]:
    """All launches, in interleaved blocks."""
    calibration, counts = suite(), repetitions(launches)
    cases = calibration.experiment(EXPERIMENT).size(SIZE).cases
    return plan(calibration, EXPERIMENT, SIZE, {case.case_id: counts[case.arm] for case in cases})


def values_from(results: Path, launches: int) -> Values:
    """One value per launch. SystemExit with one line when launches are missing."""
    store, counts, arms = Store(results), repetitions(launches), dict[str, list[float]]()
    for case in suite().experiment(EXPERIMENT).size(SIZE).cases:
        finished = finished_launches(case.case_id, counts[case.arm], store)
        if len(finished) < counts[case.arm]:
            raise SystemExit(
                f"arm {case.arm} has {len(finished)} of {counts[case.arm]} launches; start `run` again, it goes on"
            )
        arms[case.arm] = [float(f"{digest_s(store.samples(record).to_pandas()):.6g}") for record in finished]
    return Values(launches, arms)


def digest_s(samples: pd.DataFrame) -> float:
    """Median time of a digest in s, warm-up left out: the value of a launch."""
    return median_s(digests_ns(samples))


def digests_ns(samples: pd.DataFrame) -> list[int]:
    """Time of each digest in ns, warm-up left out."""
    rows = timed(samples, "digest")
    return [int(duration) for duration in rows["end_ns"] - rows["start_ns"]]


def median_s(durations_ns: Sequence[int]) -> float:
    return float(np.median(durations_ns)) / 1e9


def outcome(values: Values) -> dict[str, Any]:
    """Rates of findings with binomial intervals. The noise floor comes from the study's own first blocks."""
    floor, noise = values.floor(values.launches)
    floor_of_fewest, _ = values.floor(FEWEST)
    same = [
        compare(*values.comparison("b", number), paired=True, floor=floor if number < SLOWED else floor_of_fewest)
        for number in range(SAME)
    ]
    alone = [compare(*values.comparison("b", number), paired=True, floor=0.0) for number in range(SAME)]
    slowed = [compare(*values.comparison("slowed", number), paired=True, floor=floor) for number in range(SLOWED)]
    smallest = detectable(noise, values.launches, True, floor=floor)
    return {
        "launches_per_arm": values.launches,
        "noise_floor": floor,
        "noise_floor_of_six": floor_of_fewest,
        "spread": noise,
        "detectable": smallest,
        "floor_allows": bool(smallest <= SLOWDOWN),
        "false_alarms": _rate(comparison.finding in ("higher", "lower") for comparison in same),
        "false_alarms_of_the_test_alone": _rate(
            comparison.p_value is not None and comparison.p_value <= STATED for comparison in alone
        ),
        "found": _rate(comparison.finding == "higher" for comparison in slowed),
        "findings_on_the_slowdown": _findings(values, floor=floor, launches=values.launches),
        "slowdown_measured": float(
            np.median([comparison.ratio for comparison in slowed if comparison.ratio is not None])
        )
        - 1,
        "with_a_floor_above_the_slowdown": _findings(values, floor=2 * SLOWDOWN, launches=values.launches),
        "with_too_few_launches": _findings(values, floor=floor, launches=5),
    }


def verdicts(outcome_values: dict[str, Any]) -> dict[str, bool]:
    """Whether each criterion of the study is met."""
    return {
        "false alarms within 5 %": outcome_values["false_alarms"]["low"] <= STATED
        and outcome_values["false_alarms_of_the_test_alone"]["low"] <= STATED,
        "5 % slowdown found in at least 95 % of comparisons, or inconclusive": (
            outcome_values["found"]["rate"] >= WANTED
            if outcome_values["floor_allows"]
            else "no difference" not in outcome_values["findings_on_the_slowdown"]
        ),
        "inconclusive where the floor does not allow it": outcome_values["with_a_floor_above_the_slowdown"].get(
            "inconclusive", 0
        )
        >= WANTED * SLOWED,
        "inconclusive with too few launches": outcome_values["with_too_few_launches"] == {"inconclusive": SLOWED},
    }


def _findings(values: Values, floor: float, launches: int) -> dict[str, int]:
    """Counts of findings of the comparisons with the slowed arm, for this floor and number of launches."""
    findings = [
        compare(*(side[:launches] for side in values.comparison("slowed", number)), paired=True, floor=floor).finding
        for number in range(SLOWED)
    ]
    return {finding: findings.count(finding) for finding in sorted(set(findings))}


def _rate(hits: Iterable[bool]) -> dict[str, float]:
    """Share with its exact binomial 95 % interval (Clopper and Pearson)."""
    outcomes: Sequence[bool] = [bool(hit) for hit in hits]
    interval = binomtest(sum(outcomes), len(outcomes)).proportion_ci(0.95, "exact")
    return {
        "count": sum(outcomes),
        "of": len(outcomes),
        "rate": sum(outcomes) / len(outcomes),
        "low": float(interval.low),
        "high": float(interval.high),
    }
