"""The study of identical arms: its arithmetic on made-up values, its plan, and the docs against the kept values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scaleproof.stats.compare_arms import detectable
from tools.aa_study import DOCS, STUDY, VALUES, kept
from tools.aa_study.analysis import LAUNCHES, Pairs, confirmation, outcome, pooled
from tools.aa_study.kinds import ARMS, kinds, suite
from tools.aa_study.launches import CONFIRMING, Pool, calls_of, confirming

BLOCKS = 78
FACTS: dict[str, Any] = {
    "date": "2026-01-01",
    "cpu": "a made-up machine",
    "kinds": {
        name: {"title": name, "better": better, "case": case, "handicap": 0.2}
        for name, better, case in (("train", "higher", "1"), ("small", "lower", "2"), ("large", "lower", "2"))
    },
}


def made_up(noise: float, between_arms: float = 0.0, higher_is_better: bool = False) -> Pairs:
    """Two identical arms of a machine that drifts; with `between_arms` the first one wrongly is larger, after the
    blocks that the floor comes from."""
    generator = np.random.default_rng(7)
    drift = generator.normal(0, 0.1, BLOCKS)
    first, second = (np.exp(drift + generator.normal(0, noise, BLOCKS)) for _ in ARMS)
    first[30:] *= 1 + between_arms
    return Pairs(first, second, higher_is_better)


def test_the_resolution_is_that_of_the_noise_whichever_way_is_better() -> None:
    slower, faster = outcome(made_up(0.02)), outcome(made_up(0.02, higher_is_better=True))
    for result in (slower, faster):
        assert result.resolution is not None and result.found >= 95
        assert result.resolution == pytest.approx(detectable(0.02, LAUNCHES, True, floor=result.floor), rel=0.25)
    noisier = outcome(made_up(0.06)).resolution
    assert noisier is not None and slower.resolution is not None and noisier > 2 * slower.resolution


def test_one_step_below_the_resolution_fewer_than_95_of_100_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    result = outcome(made_up(0.02))
    assert result.resolution is not None
    monkeypatch.setattr("tools.aa_study.analysis.STEP", result.resolution - 0.001)
    monkeypatch.setattr("tools.aa_study.analysis.STEPS", 1)
    assert outcome(made_up(0.02)).resolution is None


def test_noise_that_hides_twice_the_time_has_no_resolution() -> None:
    assert outcome(made_up(0.8)).resolution is None


def test_identical_arms_raise_few_alarms_and_different_ones_as_they_ran_do() -> None:
    same, different = outcome(made_up(0.02)).alarms, outcome(made_up(0.02, between_arms=0.2)).alarms
    assert same.comparisons == same.independent == (BLOCKS - 30) // LAUNCHES and same.ways == 64 * same.comparisons
    assert same.rate <= 2 / 64 and same.as_run <= 1
    assert different.as_run == different.comparisons


def test_ways_to_swap_one_comparison_do_not_narrow_the_interval() -> None:
    """8 comparisons bound the rate no better than 8 independent ones, however many ways there are to swap them."""
    alarms = replace(outcome(made_up(0.02)).alarms, swapped=0)
    assert alarms.interval == pytest.approx((0, 1 - 0.025 ** (1 / 8)))
    assert replace(alarms, swapped=alarms.ways).interval == pytest.approx((0.025 ** (1 / 8), 1))
    assert pooled([alarms, alarms], 8).interval == alarms.interval
    assert pooled([alarms, alarms], 16).interval[1] < alarms.interval[1]


def test_a_pool_that_is_too_small_is_one_line() -> None:
    with pytest.raises(SystemExit, match="35 blocks; the study needs at least 36"):
        outcome(Pairs(np.ones(35), np.ones(35), False))


def test_no_comparison_goes_over_a_pause_between_two_calls() -> None:
    """48 blocks after those of the floor, of which a call made 10: one comparison before the pause and 6 after it."""
    pairs = replace(made_up(0.02), calls=[0] * 40 + [1] * 38)
    assert [int(group[0]) for group in pairs.groups] == [30, 40, 46, 52, 58, 64, 70]
    result = outcome(pairs).alarms
    assert result.comparisons == result.independent == 7
    assert all(start + LAUNCHES <= 40 or start >= 40 for start in pairs.starts(LAUNCHES, 30))
    with pytest.raises(SystemExit, match="no call made 6 neighbouring blocks"):
        outcome(replace(pairs, calls=[block // 5 for block in range(BLOCKS)]))


def test_the_table_says_how_many_calls_made_the_pool() -> None:
    study = made_up_study()
    assert "calls" not in kept.table(study)
    calls = {str(block): int(block >= 40) for block in range(BLOCKS)}
    resumed = kept.Study(study.values, {**study.facts, "calls": {"a/b": calls}})
    assert "values of 2 calls, a made-up machine" in kept.table(resumed)
    assert resumed.outcomes()["train"].alarms.comparisons == 7


def test_blocks_know_their_call_in_the_order_of_time() -> None:
    records: list[Any] = [
        SimpleNamespace(plan_index=block, campaign_id=call, started_at=str(moment))
        for moment, (block, call) in enumerate([(0, "z"), (1, "z"), (1, "z"), (2, "b"), (3, "b")])
    ]
    assert calls_of(records[::-1]) == {0: 0, 1: 0, 2: 1, 3: 1}


def test_real_slowdowns_are_counted_by_comparisons() -> None:
    plain = made_up(0.01).second[:12]
    slowed = confirmation(Pairs(plain * 1.2, plain, False), 0.2, 0.02)
    assert (slowed.found, slowed.comparisons, slowed.measured) == (2, 2, pytest.approx(0.2))
    rate = confirmation(Pairs(plain / 1.2, plain, True), 0.2, 0.02)
    assert (rate.found, rate.measured) == (2, pytest.approx(0.2))
    assert confirmation(Pairs(plain, plain, False), 0.2, 0.02).found == 0


def test_the_pool_has_240_launches_of_every_kind_that_claims_judge(tmp_path: Path) -> None:
    study = suite()
    assert [kind.name for kind in kinds(study)] == [
        "train_tcp",
        "train_shm",
        "train_gloo",
        *(f"all_reduce_{size}_mib_{way}" for way in ("tcp", "shm", "gloo") for size in (1, 64)),
    ]
    pool = Pool(tmp_path, 120, 120)
    planned = {kind.name: [kind.case_of(arm).case_id for arm in ARMS] for kind in pool.kinds}
    launched = [launch.case.case_id for block in pool.blocks for launch in block]
    assert {name: sum(map(launched.count, ids)) for name, ids in planned.items()} == dict.fromkeys(planned, 240)
    assert all(len(set(ids)) == 2 for ids in planned.values())


def test_a_slowed_launch_differs_from_a_plain_one_by_its_handicap_alone() -> None:
    for kind in kinds(suite()):
        slowed, plain = (confirming(kind, 0.123)[arm].case for arm in CONFIRMING)
        assert (slowed.handicap, plain.handicap) == (0.123, 0)
        assert slowed.changed({"handicap": 0.0, "arm": plain.arm}).case_id == plain.case_id != kind.case.case_id


def made_up_study() -> kept.Study:
    values: dict[str, dict[str, dict[int, float]]] = {}
    for number, (name, kind) in enumerate(FACTS["kinds"].items()):
        higher = kind["better"] == "higher"
        pairs = made_up(0.01 * (1 + number), higher_is_better=higher)
        arms = dict(zip(ARMS, (pairs.first, pairs.second), strict=True))
        plain = pairs.first[:12]
        arms |= dict(zip(CONFIRMING, (plain / 1.2 if higher else plain * 1.2, plain), strict=True))
        values[name] = {
            arm: {block: float(f"{value:.6g}") for block, value in enumerate(run)} for arm, run in arms.items()
        }
    return kept.Study(values, FACTS)


def test_values_and_facts_come_back_as_they_were(tmp_path: Path) -> None:
    study = made_up_study()
    kept.write(study, tmp_path / "values.csv", tmp_path / "facts.json")
    assert kept.read(tmp_path / "values.csv", tmp_path / "facts.json") == study


def test_a_page_whose_table_is_not_that_of_the_values_is_seen() -> None:
    study = made_up_study()
    page = kept.replaced(DOCS.read_text(), kept.table(study))
    assert kept.in_docs(page) == kept.table(study)
    assert "| train |" in page and "found 2 of 2, measured 20.0 %" in page and "| all kinds |" in page
    slower = {block: 3 * value if block == 50 else value for block, value in study.values["train"]["a"].items()}
    other = {**study.values, "train": {**study.values["train"], "a": slower}}
    assert kept.in_docs(page) != kept.table(kept.Study(other, study.facts))


def test_two_sizes_of_one_launch_count_once_for_all_kinds() -> None:
    study = made_up_study()
    outcomes = study.outcomes()
    every = study.pooled(outcomes)
    assert (every.comparisons, every.independent) == (24, 16)


def test_the_docs_state_what_follows_from_the_kept_values() -> None:
    stated = kept.in_docs(DOCS.read_text())
    assert stated is not None
    assert stated == kept.table(kept.read(VALUES, STUDY))


def test_the_prose_below_the_table_states_what_follows_from_the_kept_values() -> None:
    study = kept.read(VALUES, STUDY)
    outcomes = study.outcomes()
    alarms = study.pooled(outcomes)
    found = [each for name, kind in outcomes.items() if (each := study.confirmation(name, kind.floor))]

    def resolutions(kinds: str) -> str:
        known = [kind.resolution for name, kind in outcomes.items() if name.startswith(kinds) and kind.resolution]
        return f"{100 * min(known):.0f} to {100 * max(known):.0f} %"

    def slowed(kind: str) -> tuple[str, str]:
        confirmed, asked = study.confirmation(kind, outcomes[kind].floor), outcomes[kind].resolution
        assert confirmed is not None and asked is not None
        return f"{100 * confirmed.measured:.0f}", f"{100 * asked:.0f} %"

    shm, tcp = slowed("all_reduce_64_mib_shm"), slowed("all_reduce_64_mib_tcp")
    page = " ".join(DOCS.read_text().split())
    for sentence in (
        f"What it shows: {alarms.as_run} of {alarms.comparisons} comparisons of identical arms was a false alarm",
        f"a training must be slower by {resolutions('train')} before it is found in 95 of 100 comparisons",
        f"and an all-reduce of 64 MiB by {resolutions('all_reduce_64_mib')}.",
        f"found it, {sum(each.found for each in found)} of {sum(each.comparisons for each in found)} in all",
        f"64 MiB over shm by {shm[0]} % instead of {shm[1]}, and over tcp by {tcp[0]} instead of {tcp[1]}",
    ):
        assert sentence in page, sentence
