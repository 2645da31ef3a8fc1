"""For any list of edges every rank makes the same plan, regions do not overlap, and no cache line is written by two
ranks. Descriptions survive serialisation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.remote._region_plan import (
    DIMENSIONS,
    DTYPES,
    PAGE,
    Plan,
    check_shape,
    describe,
    described,
    rounded,
)
from scaleproof.remote.tensor_channel import Edge, NotStatic
from scaleproof.remote.zero_copy_mechanism import ZeroCopy
from scaleproof.transports._buffers import CACHE_LINE

RANKS = 3
PLACES = st.lists(st.tuples(st.integers(0, RANKS - 1), st.integers(0, 40), st.integers(0, 3 * PAGE)), max_size=30)


@given(PLACES)
def test_regions_of_a_rank_do_not_overlap_and_keep_their_offset(places: list[tuple[int, int, int]]) -> None:
    plan, again = Plan(RANKS), Plan(RANKS)
    largest: dict[tuple[int, int], int] = {}
    for rank, name, nbytes in places:
        for drawn_plan in (plan, again):
            drawn_plan.reserve(rank, name, nbytes)
        largest.setdefault((rank, name), nbytes)
    for rank in range(RANKS):
        spans = sorted(
            (plan.offset(rank, name), plan.offset(rank, name) + max(nbytes, 1))
            for (owner, name), nbytes in largest.items()
            if owner == rank
        )
        assert all(start % CACHE_LINE == 0 and stop <= plan.nbytes for start, stop in spans)
        assert all(rounded(stop, CACHE_LINE) <= start for (_, stop), (start, _) in pairwise(spans))
    assert all(plan.offset(*key) == again.offset(*key) for key in largest)


EDGES = st.lists(
    st.builds(
        Edge,
        st.sampled_from("abc"),
        st.integers(0, 2),
        st.integers(0, 2),
        st.lists(st.integers(0, 50), max_size=3).map(tuple),
    ),
    max_size=12,
    unique_by=lambda edge: (edge.name, edge.source, edge.destination),
)


@given(EDGES)
def test_the_flag_of_a_tensor_lies_behind_it_and_inside_its_region(edges: list[Edge]) -> None:
    plan, shapes = Plan(RANKS), {(edge.source, edge.name): edge.shape for edge in edges}
    fitting = [edge for edge in edges if edge.shape == shapes[edge.source, edge.name]]
    for edge in fitting:
        ZeroCopy.reserve(None, plan, edge)  # type: ignore[arg-type]
    ends = sorted(
        (plan.offset(edge.destination, ("arrival", edge)), rounded(edge.nbytes) + 8, edge.destination)
        for edge in fitting
        if edge.source != edge.destination
    )
    for rank in range(RANKS):
        spans = [(start, start + nbytes) for start, nbytes, owner in ends if owner == rank]
        assert all(stop <= plan.nbytes for _, stop in spans)
        assert all(stop <= start for (_, stop), (start, _) in pairwise(spans))


@given(st.lists(st.integers(0, 2**40), max_size=DIMENSIONS).map(tuple), st.sampled_from(DTYPES))
def test_a_description_survives_serialisation(shape: tuple[int, ...], dtype: str) -> None:
    assert described(np.array(describe(shape, dtype), np.uint64).tolist()) == (shape, dtype)


def test_invalid_descriptions_are_refused() -> None:
    for shape, dtype in (((1,) * (DIMENSIONS + 1), "float32"), ((1,), "object")):
        with pytest.raises(NotStatic, match="cannot be described"):
            describe(shape, dtype)


@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=2).map(tuple),
    st.lists(st.integers(0, 6), min_size=1, max_size=3).map(tuple),
)
def test_a_varying_edge_takes_shapes_up_to_its_own(most: tuple[int, ...], shape: tuple[int, ...]) -> None:
    fits = len(shape) == len(most) and all(size <= limit for size, limit in zip(shape, most, strict=True))
    if fits:
        check_shape(Edge("e", 0, 1, most, static=False), shape, np.dtype("float32"))
    else:
        with pytest.raises(NotStatic, match="at most"):
            check_shape(Edge("e", 0, 1, most, static=False), shape, np.dtype("float32"))
