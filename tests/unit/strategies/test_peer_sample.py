"""Samples of peers: without repetition, never too many, and every peer as often as every other."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from scaleproof.strategies.peer_sample import PeerSample

PEERS = [3, 4, 5, 7, 8, 9, 11, 12, 20]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
def test_a_sample_has_no_peer_twice_and_each_peer_equally_often(size: int) -> None:
    sample, draws = PeerSample(PEERS, size, np.random.default_rng(1)), 4000
    drawn = [list(sample()) for _ in range(draws)]
    assert all(len(set(each)) == size and set(each) <= set(PEERS) for each in drawn)
    counts = Counter(peer for each in drawn for peer in each)
    expected = draws * size / len(PEERS)
    assert all(abs(counts[peer] - expected) < 5 * expected**0.5 for peer in PEERS)


def test_pairs_are_drawn_together_as_often_as_by_chance() -> None:
    sample, draws = PeerSample(PEERS, 2, np.random.default_rng(2)), 7200
    pairs = Counter(frozenset(sample()) for _ in range(draws))
    assert len(pairs) == 36 and max(abs(count - 200) for count in pairs.values()) < 5 * 200**0.5


@pytest.mark.parametrize("size", [len(PEERS), len(PEERS) + 1])
def test_a_sample_of_all_needs_no_numbers(size: int) -> None:
    generator = np.random.default_rng(1)
    assert list(PeerSample(PEERS, size, generator)()) == PEERS
    assert generator.random() == np.random.default_rng(1).random()
