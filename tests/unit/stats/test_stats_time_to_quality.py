"""MLPerf's scoring of several runs (training_rules.adoc, mlcommons/training_policies at d73e20f)."""

import pytest

from scaleproof.stats.time_to_quality import olympic_mean, score


def test_olympic_mean_drops_the_ends() -> None:
    assert olympic_mean([1, 100, 10, 20, 30]) == 20
    assert olympic_mean(list(range(40)), dropped=4) == 19.5
    with pytest.raises(ValueError, match="leave none"):
        olympic_mean([1, 2])


def test_one_run_may_fail_to_converge_and_counts_as_slowest() -> None:
    assert score([10, 11, None, 12, 13], 5).value == 12
    assert score([10, 11, None, 12, None], 5).value is None
    assert "2 runs did not converge, at most 1 may" in score([10, 11, None, 12, None], 5).why


def test_too_few_runs_give_no_score() -> None:
    assert score([10, 11], 5).why == "2 runs, the result needs 5"


def test_more_runs_are_scored_by_their_median_window() -> None:
    assert score([10, 10, 10, 20, 20], 3).value == 10  # windows: 10, 10, 20
    assert score([10, 10, 10, None, None], 3).value == 10  # 10, 10, invalid
    assert score([10, None, None, 10, 10], 3).value is None  # invalid, invalid, 10
    assert score([10, 10, 10, 20, 20, 20], 3).value == 20  # 10, 10, 20, 20: the slower of the middle ones
    assert "median of 3 windows of 3 runs" in score([10, 10, 10, 20, 20], 3).why
