"""Groups of a launch's samples equal those of pandas for any keys."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from scaleproof.claims.sample_columns import distinct, index_in_group, largest, largest_by_row, medians, numbered

LARGE = (1 << 62) - 1
SIZES = st.integers(0, 40)
SMALL, ANY = st.integers(0, 4), st.one_of(st.integers(-3, 3), st.sampled_from([1 << 40, LARGE, -LARGE]))


def _keys(elements: st.SearchStrategy[int], kinds: tuple[str, ...]) -> st.SearchStrategy[tuple[np.ndarray, ...]]:
    return SIZES.flatmap(lambda rows: st.tuples(*(arrays(kind, rows, elements=elements) for kind in kinds)))


@given(_keys(SMALL, ("int16", "int8", "int64")) | _keys(ANY, ("int64", "int64", "int64")))
def test_numbers_are_equal_where_all_keys_are_and_in_their_order(keys: tuple[np.ndarray, ...]) -> None:
    numbers = numbered(*keys)
    order = pd.DataFrame(dict(enumerate(keys))).groupby(list(range(len(keys)))).ngroup().to_numpy()
    assert np.array_equal(np.unique(numbers, return_inverse=True)[1], order)


@given(_keys(SMALL, ("int64", "int64")))
def test_medians_and_largest_values_are_those_of_pandas(columns: tuple[np.ndarray, ...]) -> None:
    group, values = columns
    grouped = pd.Series(values).groupby(group)
    names, middle, counts = medians(group, values)
    assert (
        names.tolist() == list(grouped.groups)
        and middle.tolist() == grouped.median().tolist()
        and counts.tolist() == grouped.size().tolist()
    )
    names, top = largest(group, values)
    assert names.tolist() == list(grouped.groups) and top.tolist() == grouped.max().tolist()


@given(_keys(SMALL, ("int64",)))
def test_places_count_within_runs_of_equal_numbers(columns: tuple[np.ndarray, ...]) -> None:
    (group,) = columns
    group.sort()
    assert index_in_group(group).tolist() == pd.Series(group).groupby(group).cumcount().tolist()
    assert distinct(group) == len(set(group.tolist()))


@given(_keys(SMALL, ("int64", "int64")))
def test_every_row_learns_of_its_group(columns: tuple[np.ndarray, ...]) -> None:
    group, values = columns
    top, together = largest_by_row(group, values)
    grouped = pd.Series(values).groupby(group)
    assert top.tolist() == grouped.transform("max").tolist() and together.tolist() == grouped.transform("size").tolist()
