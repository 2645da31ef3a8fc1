"""Fitted alpha, beta and gamma are those that generated the times, and their intervals cover them about as often as
stated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.collectives.message_schedule import Action, messages
from scaleproof.simulate.alpha_beta_fit import Segment, choose_cuts, fit_line, seconds
from scaleproof.simulate.collective_rounds import messages_s, rounds_of
from scaleproof.simulate.cost_fit import fit_transfer
from scaleproof.simulate.reduction_fit import fit_reduction

SIZES = 4.0 ** np.arange(1, 13)
"""4 B to 16 MiB, as suite micro has them at size smoke."""
alphas, betas = st.floats(1e-7, 1e-2), st.floats(1e-11, 1e-7)
gammas = st.floats(1e-11, 1e-7)


@given(alphas, betas)
def test_a_line_without_noise_is_found(alpha: float, beta: float) -> None:
    assert fit_line(SIZES, alpha + beta * SIZES) == pytest.approx((alpha, beta), rel=1e-6)


@given(alphas, betas, gammas, st.sampled_from(["ring", "halving_doubling"]), st.sampled_from([2, 3, 4, 8]))
@settings(max_examples=40, deadline=None)
def test_gamma_is_what_an_all_reduce_takes_beyond_its_messages(
    alpha: float, beta: float, gamma: float, algorithm: str, ranks: int
) -> None:
    sent = (alpha + beta * SIZES)[None]
    line, rounds = fit_transfer("t", SIZES, sent), rounds_of(algorithm, "all_reduce", ranks)
    call_s = messages_s(line.segments, rounds, SIZES) + gamma * rounds.reduced * SIZES
    fit = fit_reduction("t", line, algorithm, ranks, SIZES, call_s[None], (SIZES, sent))
    assert fit.gammas[0].value.value == pytest.approx(gamma, rel=1e-4, abs=1e-6 * beta)
    assert (fit.gammas[0].value.low, fit.gammas[0].value.high) == (None, None)  # one launch


@given(st.sampled_from([2, 3, 4, 5, 8, 16]))
def test_the_rings_rounds_are_those_of_the_formula(ranks: int) -> None:
    """2 (p - 1) a + 2 n (p - 1)/p b + n (p - 1)/p g: pairwise reduce-scatter and ring all-gather in the comments of
    MPICH's source."""
    rounds = rounds_of("ring", "all_reduce", ranks)
    assert rounds.messages == pytest.approx([1 / ranks] * 2 * (ranks - 1))
    assert rounds.reduced == pytest.approx((ranks - 1) / ranks)


@given(st.sampled_from([2, 4, 8, 16]))
def test_halving_and_doublings_rounds_are_rabenseifners(ranks: int) -> None:
    """2 lg p a + 2 n (p - 1)/p b + n (p - 1)/p g for p = 2^k."""
    rounds = rounds_of("halving_doubling", "all_reduce", ranks)
    assert len(rounds.messages) == 2 * np.log2(ranks)
    assert sum(rounds.messages) == pytest.approx(2 * (ranks - 1) / ranks)
    assert rounds.reduced == pytest.approx((ranks - 1) / ranks)


@given(st.sampled_from(["ring", "halving_doubling", "tree"]), st.integers(2, 9))
def test_no_round_is_shorter_than_its_longest_message(algorithm: str, ranks: int) -> None:
    count, rounds = 1024 * ranks, rounds_of(algorithm, "all_reduce", ranks)
    every = list(messages(algorithm, "all_reduce", ranks, count))
    assert len(rounds.messages) == len({message.round for message in every})
    assert max(message.stop - message.start for message in every) / count == pytest.approx(max(rounds.messages))
    assert (
        sum(message.stop - message.start for message in every if message.action is Action.REDUCE) / count
        <= rounds.reduced * ranks + 1e-9
    )


def test_intervals_hold_what_made_the_times_in_nine_of_ten_experiments() -> None:
    """Launches differ by 3 %, sizes of a launch by 2 % more; 8 launches each of a ping-pong and an all-reduce."""
    generator, held, trials = np.random.default_rng(7), np.zeros(3), 30
    for _ in range(trials):
        alpha, beta, gamma = 10 ** generator.uniform((-6, -10, -10), (-3, -8, -9))
        sent = _noisy(generator, alpha + beta * SIZES)
        line = fit_transfer("t", SIZES, sent)
        fit = fit_reduction(
            "t", line, "ring", 2, SIZES, _noisy(generator, 2 * alpha + SIZES * beta + SIZES / 2 * gamma), (SIZES, sent)
        )
        for index, (value, true) in enumerate(
            ((line.alphas[0], alpha), (line.betas[-1], beta), (fit.gammas[0].value, gamma))
        ):
            assert value.low is not None and value.high is not None
            held[index] += value.low <= true <= value.high
        assert line.goodness.r_squared > 0.99
    assert (held >= 0.9 * trials).all(), held


def test_a_change_of_protocol_is_detected_only_where_there_is_one() -> None:
    generator = np.random.default_rng(1)
    switch = (Segment(4096, 2e-6, 1e-9), Segment(None, 3e-5, 1e-10))
    noise = np.exp(generator.normal(0, 0.02, len(SIZES)))
    cuts, scores = choose_cuts(SIZES, seconds(switch, SIZES) * noise)
    assert cuts == (6,) and scores[2] < scores[1] - 10  # 4, 16, 64, 256, 1024 and 4096 B
    assert choose_cuts(SIZES, (2e-6 + 1e-9 * SIZES) * noise)[0] == ()


def _noisy(generator: np.random.Generator, times: np.ndarray, launches: int = 8) -> np.ndarray:
    return times * np.exp(generator.normal(0, 0.03, (launches, 1)) + generator.normal(0, 0.02, (launches, len(times))))


@given(st.floats(2.5, 5), st.sampled_from([2, 4]))
@settings(max_examples=20, deadline=None)
def test_a_larger_gamma_beyond_a_cache_is_found_where_it_begins(times: float, ranks: int) -> None:
    alpha, beta, gamma, edge = 1e-5, 1e-10, 2e-10, SIZES[-4]
    generator = np.random.default_rng(2)
    sent = _noisy(generator, alpha + beta * SIZES)
    line, rounds = fit_transfer("t", SIZES, sent), rounds_of("ring", "all_reduce", ranks)
    reduced = rounds.reduced * SIZES * np.where(edge >= SIZES, gamma, times * gamma)
    took = _noisy(generator, messages_s((Segment(None, alpha, beta),), rounds, SIZES) + reduced)
    found = fit_reduction("t", line, "ring", ranks, SIZES, took, (SIZES, sent))
    by_size = {each.nbytes: each.value.value for each in found.gammas}
    assert min(by_size) == 65536 and by_size[int(edge)] == pytest.approx(gamma, rel=0.3)
    assert by_size[int(SIZES[-1])] == pytest.approx(times * gamma, rel=0.3)
