"""The first block of an experiment against the others."""

from __future__ import annotations

import numpy as np

from harness.claims.launch import Launch
from harness.claims.settling import settling, timed_regions
from tests.unit.claims_samples import TRAIN, record, samples

CASES, BLOCKS = 12, 6


def regions(seed: int, first: float = 1.0) -> dict[str, dict[int, float]]:
    """Timed regions that spread by 3 %; those of block 0 are `first` times as long."""
    noise = np.random.default_rng(seed).normal(1, 0.03, (CASES, BLOCKS))
    noise[:, 0] *= first
    return {str(case): dict(enumerate(row)) for case, row in enumerate(noise)}


def test_a_slower_first_block_is_found_and_an_equal_one_rarely_accused() -> None:
    slow = [settling(regions(seed, first=1.1)) for seed in range(50)]
    assert all(found is not None and not found.settled and 0.05 < found.share < 0.15 for found in slow)
    accused = sum(found is not None and not found.settled for found in (settling(regions(seed)) for seed in range(400)))
    assert accused <= 30  # a sign test over 12 cases accuses in 3.9 % by chance: 16 expected, 3.7 deviations above


def test_a_faster_first_block_is_found_too() -> None:
    found = settling(regions(0, first=0.9))
    assert found is not None and not found.settled and found.slower == 0 and found.share < 0


def test_few_cases_cannot_tell_and_few_launches_are_not_compared() -> None:
    few = settling({str(case): {0: 2.0, 1: 1.0, 2: 1.0} for case in range(5)})
    assert few is not None and few.settled and few.slower == 5
    assert settling({"a": {0: 2.0, 1: 1.0}, "b": {1: 1.0, 2: 1.0, 3: 1.0}}) is None


def test_the_timed_region_is_the_common_wall_time_by_case_and_block() -> None:
    marks = [(rank, name, 0, at, at) for rank, name, at in ((0, "start", 1), (1, "start", 2), (0, "end", 30), (1, "end", 41))]
    whole = [Launch(record(TRAIN, block), samples(*marks)) for block in range(2)]
    without_end = Launch(record(TRAIN, 2), samples(*marks[:2]))
    assert timed_regions([*whole, without_end]) == {whole[0].record.case_id: {0: 0.04, 1: 0.04}}
