"""A rank that is slow over many launches is named as a straggler, and no rank is named by chance."""

from __future__ import annotations

import numpy as np
import pytest

from scaleproof.claims.stragglers import SlowestRank, find, rank_spread, rank_times
from tests.unit.claims.claims_samples import TRAIN, record, samples, step


def launches(
    count: int, ranks: int, seed: int, slow: int | None = None, share: float = 0.2, noise: float = 0.02
) -> np.ndarray:
    """Own times: launches differ by up to a third, ranks by noise."""
    dice = np.random.default_rng(seed)
    values = (1 + dice.random((count, 1)) / 3) * (1 + noise * dice.standard_normal((count, ranks)))
    if slow is not None:
        values[:, slow] *= 1 + share
    return np.asarray(values)


@pytest.mark.parametrize(("ranks", "slow"), [(2, 1), (4, 2), (8, 0)])
def test_a_slow_rank_is_named_with_its_share(ranks: int, slow: int) -> None:
    straggler = find(launches(6, ranks, 1, slow).tolist())
    assert straggler is not None and straggler.straggler
    assert (straggler.rank, straggler.n) == (slow, 6)
    assert straggler.share == pytest.approx(0.2, abs=0.04)


def test_equal_ranks_are_rarely_called_unequal() -> None:
    """5 % of 200 are significant by chance; the minimum effect excludes most of these too."""
    significant = [find(launches(6, 3, seed, noise=0.1).tolist()) for seed in range(200)]
    assert (
        sum(straggler is not None and straggler.p is not None and straggler.p <= 0.05 for straggler in significant)
        <= 20
    )
    assert (
        sum(
            straggler is not None and straggler.straggler
            for straggler in [find(launches(6, 3, seed).tolist()) for seed in range(50)]
        )
        == 0
    )


def test_a_small_difference_is_no_straggler_however_sure() -> None:
    straggler = find(launches(12, 2, 2, slow=0, share=0.03, noise=0.001).tolist())
    assert straggler is not None and straggler.p is not None
    assert (straggler.p < 0.01, straggler.straggler) == (True, False)


def test_few_launches_name_nobody() -> None:
    of_five_launches, of_one_launch = find(launches(5, 2, 3, slow=1).tolist()), find(launches(1, 2, 3, slow=1).tolist())
    assert of_five_launches is not None and of_one_launch is not None
    assert (
        of_five_launches.rank,
        of_five_launches.straggler,
        of_one_launch.rank,
        of_one_launch.p,
        of_one_launch.straggler,
    ) == (1, False, 1, None, False)
    assert find([]) is None
    assert find([[1.0], [1.0]]) is None


def test_equal_values_are_no_evidence() -> None:
    assert find([[1.0, 1.0]] * 6) == SlowestRank(0, 0.0, 1.0, 6)


def test_own_time_leaves_out_what_a_rank_spends_on_others() -> None:
    """Rank 1's backward pass is 12 ms longer; both steps last 100 ms."""
    rows = [*step(0, 0, 0, (70, 90)), *step(1, 0, 0, (82, 90)), (1, "backward", 0, 70, 82)]
    times = rank_times(record(TRAIN), samples(*rows))
    assert times is not None
    assert times["step"].tolist() == [0.1, 0.1]
    assert times["own"].tolist() == pytest.approx([0.08, 0.092])
    assert times["imbalance"].tolist() == pytest.approx([0.012, 0])
    assert rank_spread(record(TRAIN), samples(*rows)) == pytest.approx(0.15)


def test_a_traced_launch_has_no_times() -> None:
    assert rank_times(record({**TRAIN, "tracing": "full"}), samples(*step(0, 0, 0), *step(1, 0, 0))) is None
