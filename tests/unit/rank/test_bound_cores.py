"""Distribution of a node's cores over its ranks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scaleproof.rank import parent
from scaleproof.rank.parent import neighbours_first, shares


@given(st.lists(st.integers(0, 255), min_size=1, max_size=64, unique=True), st.integers(1, 64))
def test_every_rank_has_as_many_cores_and_none_has_another_ones(cores: list[int], ranks: int) -> None:
    cores_of_ranks = shares(cores, ranks)
    assert len(cores_of_ranks) == ranks
    if ranks <= len(cores):
        assert {len(own) for own in cores_of_ranks} == {len(cores) // ranks}
        assert len({core for own in cores_of_ranks for core in own}) == ranks * (len(cores) // ranks)
    else:
        assert cores_of_ranks == [cores] * ranks


def test_threads_of_one_core_go_to_one_rank(monkeypatch) -> None:
    """Linux counts the first thread of every core, then the second ones."""
    monkeypatch.setattr(parent, "_topology", lambda core, name: core % 4 if name == "core_id" else 0)
    assert shares(neighbours_first(range(8)), 2) == [[0, 4, 1, 5], [2, 6, 3, 7]]


def test_neighbours_stay_together() -> None:
    assert shares([0, 1, 2, 3, 8, 9, 10, 11], 2) == [[0, 1, 2, 3], [8, 9, 10, 11]]
