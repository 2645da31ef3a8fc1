"""Times of collectives over trees, rings, two channels, one-hop trees and servers."""

from __future__ import annotations

import pytest

from scaleproof.packed_trees.times import (
    Branch,
    adapted_chunk,
    best_chunk,
    both_channels,
    chunked,
    double_tree_all_reduce,
    flat_ring,
    one_hop_all_reduce,
    over_trees,
    ring_all_reduce,
    ring_broadcast,
    slow_share,
    three_phases,
)

RATE, LATENCY, MIB = 20e9, 10e-6, 1 << 20


def test_chunks_follow_each_other_through_a_tree() -> None:
    assert chunked(4.0, 3, 1.0, 0.5, 1.0) == (3 + 4 - 1) * 1.5
    assert chunked(0.5, 3, 1.0, 0.5, 1.0) == 3 * 1.0, "what is smaller than a chunk is one"


def test_large_arrays_take_what_the_rates_say() -> None:
    trees = [Branch(2, RATE), Branch(3, 2 * RATE)]
    assert over_trees(1e12, trees, 0.0, MIB, reduces=False) == pytest.approx(1e12 / (3 * RATE), rel=1e-3)
    assert ring_broadcast(1e12, 5, 1, RATE, 0.0, MIB) == pytest.approx(1e12 / (2 * RATE), rel=1e-3)
    assert ring_all_reduce(1e12, 4, 1, RATE, 0.0) == pytest.approx(1e12 * 2 * 3 / 4 / (2 * RATE))


def test_small_arrays_take_the_depth() -> None:
    shallow, deep = [Branch(2, RATE)], [Branch(7, RATE)]
    times = [over_trees(1024, trees, LATENCY, MIB, reduces=True) for trees in (shallow, deep)]
    assert times[1] / times[0] == pytest.approx(3.5)


def test_the_chunk_that_is_adapted_is_nearly_the_best() -> None:
    for nbytes in (64e3, 1e6, 64e6, 1e9):

        def taken(chunk: float, nbytes: float = nbytes) -> float:
            return over_trees(nbytes, [Branch(3, RATE)], LATENCY, chunk, reduces=True)

        assert taken(adapted_chunk(taken)) <= 1.1 * taken(best_chunk(taken)), nbytes


def test_two_channels_help_where_their_shares_end_together_and_hurt_where_not() -> None:
    nbytes, slow, fast = 1e9, 10e9, 40e9
    share = slow_share(nbytes, slow, fast)
    alone = both_channels(nbytes, 0.0, slow, fast)
    assert share == pytest.approx(0.2e9)
    assert both_channels(nbytes, share, slow, fast) == pytest.approx(alone * 0.8)
    assert both_channels(nbytes, nbytes / 2, slow, fast) > alone, "a wrong split"
    assert slow_share(1e6, slow, fast, switch_s=1.0) == 0.0, "switching would take longer"


def test_a_switch_makes_one_hop_trees_fast_for_small_arrays_and_no_faster_for_large_ones() -> None:
    small = [one_hop_all_reduce(1e3, 16, 120e9, LATENCY), double_tree_all_reduce(1e3, 16, 120e9, LATENCY)]
    assert small[1] / small[0] == pytest.approx(4.0, rel=0.01)
    large = [one_hop_all_reduce(1e10, 16, 120e9, 0.0), flat_ring(1e10, 16, 120e9)]
    assert large[0] == pytest.approx(large[1])


def test_servers_are_bound_by_their_network_until_it_is_faster_than_their_links() -> None:
    slow, quick = (three_phases(1e9, [60e9, 40e9], network) for network in (5e9, 50e9))
    assert slow == pytest.approx(2 * 1e9 / 40e9 + 1e9 / 5e9)
    assert quick < slow
    assert flat_ring(1e9, 8, 5e9) > slow
