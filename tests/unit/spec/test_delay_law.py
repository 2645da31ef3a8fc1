"""Laws of delays: what they draw, and what is wrong with one in one line."""

from __future__ import annotations

import numpy as np
import pytest

from scaleproof.spec.delay_law import delays_of

RANKS, SEED, MANY = 10, 3, 4000


def drawn(text: str, rank: int = 0, count: int = MANY) -> np.ndarray:
    law = delays_of(text)
    return np.array([law.drawn(rank, RANKS, SEED, number) for number in range(count)])


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("fixed:0.2", 0.2),
        ("uniform:0.1,0.3", 0.2),
        ("exponential:0.5", 0.5),
        ("gamma:2,0.25", 0.5),
        ("pareto:4,0.3", 0.4),
        ("fixed:0.2+exponential:0.3", 0.5),
        ("two_state:1,0.1,0.3,2", 0.25),
        ("contention:1,2,0.1,0.3,2,1,0.5,0.1,0.1", 1.25 * np.exp(0.01)),
    ],
)
def test_a_law_has_its_mean(text: str, mean: float) -> None:
    assert drawn(text).mean() == pytest.approx(mean, rel=0.08)


def test_draws_belong_to_a_rank_and_a_step_whoever_asks_first() -> None:
    law = delays_of("exponential:1")
    later = law.drawn(4, RANKS, SEED, 7)
    assert law.drawn(4, RANKS, SEED, 6) != later != law.drawn(5, RANKS, SEED, 7)
    assert law.drawn(4, RANKS, SEED, 7) == later


def test_a_share_delays_so_many_ranks() -> None:
    delayed = [rank for rank in range(RANKS) if drawn("fixed:1@0.3", rank, 1)[0]]
    assert len(delayed) == 3


def test_ranks_of_a_host_are_slow_together() -> None:
    law = "two_state:1,0.2,0.2,2"
    assert np.array_equal(drawn(law, 0, 200), drawn(law, 2, 200))
    assert not np.array_equal(drawn(law, 0, 200), drawn(law, 1, 200))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("expnential:1", "did you mean 'exponential'"),
        ("gamma:1", "write gamma:SHAPE,SCALE"),
        ("uniform:2,1", "LOW is above HIGH"),
        ("fixed:-1", "S is a number of at least 0"),
        ("fixed:nan", "S is a number of at least 0"),
        ("fixed:1@1.5", "SHARE is at most 1"),
        ("two_state:1,2,0.1,2", "probabilities"),
        ("contention:1,2,0.1,0.3,2,1,0.5,0.1", "write contention:S,FACTOR,IN,OUT,HOSTS,CORRELATION,RHO,SCALE,NOISE"),
        ("contention:1,0.5,0.1,0.3,2,1,0.5,0.1,0.1", "FACTOR is at least 1"),
        ("contention:1,2,0.1,0.3,2,1.5,0.5,0.1,0.1", "CORRELATION and RHO are at most 1"),
        ("contention:1,2,0.1,0.3,0.5,1,0.5,0.1,0.1", "HOSTS is a whole number"),
        ("gamma:0,1", "above 0"),
    ],
)
def test_a_wrong_law_is_told_in_one_line(text: str, wrong: str) -> None:
    with pytest.raises(ValueError) as raised:
        delays_of(text)
    assert wrong in str(raised.value) and "\n" not in str(raised.value)


def contended(correlation: float, rho: float = 0.0, factor: float = 2.0, scale: float = 0.0) -> np.ndarray:
    """Logarithms of delays, (steps, ranks), of two hosts without noise."""
    law = delays_of(f"contention:1,{factor},0.1,0.3,2,{correlation},{rho},{scale},0")
    return np.log([[law.drawn(rank, RANKS, SEED, number) for rank in range(RANKS)] for number in range(1000)])


def test_the_correlation_says_how_many_workers_are_slow_with_their_host() -> None:
    together, half, alone = (contended(correlation) for correlation in (1, 0.5, 0))
    assert np.array_equal(together[:, 0], together[:, 4]) and not np.array_equal(together[:, 0], together[:, 1])
    assert len(np.unique(alone, axis=1).T) == RANKS
    same = [np.array_equal(half[:, rank], together[:, rank]) for rank in range(RANKS)]
    assert same.count(True) == RANKS // 2
    assert together.mean() == pytest.approx(alone.mean(), rel=0.25), "as often slow at any correlation"


def test_a_worker_wanders_with_the_stated_spread_and_correlation() -> None:
    wandering = contended(1, rho=0.8, factor=1.0, scale=0.1)
    assert wandering.std() == pytest.approx(0.1, rel=0.1)
    assert np.corrcoef(wandering[1:].ravel(), wandering[:-1].ravel())[0, 1] == pytest.approx(0.8, abs=0.05)


def test_steps_do_not_change_when_later_ones_are_asked_for() -> None:
    law = delays_of("contention:1,2,0.1,0.3,2,0.5,0.8,0.1,0.1")
    first = law.drawn(3, RANKS, SEED, 200)
    assert law.drawn(3, RANKS, SEED, 5000) > 0 and law.drawn(3, RANKS, SEED, 200) == first
    again = delays_of("contention:1,2,0.1,0.3,2,0.5,0.8,0.1,0.1 ")
    assert [again.drawn(3, RANKS, SEED, number) for number in (300, 200)][1] == first
