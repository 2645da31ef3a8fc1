"""Pictures of curves with more points than columns are as small as others, and look the same."""

from __future__ import annotations

import re
from urllib.parse import unquote

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.report.csvs import data_uri
from scaleproof.report.figures.curves import COLUMNS, Curve, curves, outline
from scaleproof.report.figures.style import looks


@given(seed=st.integers(0, 1000), count=st.integers(4 * COLUMNS + 1, 20_000), cut=st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_an_outline_has_the_extremes_of_every_column_and_the_ends(seed: int, count: int, cut: float) -> None:
    generator = np.random.default_rng(seed)
    x, y = np.sort(generator.uniform(3, 9, count)), generator.normal(size=count)
    y[round(cut * count) :] = np.nan
    kept_x, kept_y = outline(x, y)
    assert len(kept_x) <= 5 * COLUMNS and (kept_x[0], kept_x[-1]) == (x[0], x[-1])
    assert set(zip(kept_x, np.nan_to_num(kept_y), strict=True)) <= set(zip(x, np.nan_to_num(y), strict=True))
    column, kept = ((each - x[0]) * (COLUMNS / (x[-1] - x[0])) for each in (x, kept_x))
    for number in generator.choice(COLUMNS - 1, 20, replace=False):
        whole, part = y[column.astype(int) == number], kept_y[kept.astype(int) == number]
        whole, part = whole[~np.isnan(whole)], part[~np.isnan(part)]
        assert len(whole) == len(part) == 0 or (whole.min(), whole.max()) == (part.min(), part.max())


def test_a_line_ends_where_its_numbers_end() -> None:
    y = np.ones(10_000)
    y[5_000:7_000] = np.nan
    _, kept = outline(np.arange(10_000.0), y)
    assert np.flatnonzero(np.diff(np.isnan(kept).astype(int))).size == 2


def test_a_curve_of_few_points_is_drawn_as_it_is() -> None:
    x, y = np.arange(1000.0), np.arange(1000.0)
    assert outline(x, y) == (x, y)


def test_a_long_curve_makes_a_small_picture() -> None:
    generator = np.random.default_rng(0)
    steps = np.arange(50_000)
    values = generator.normal(size=len(steps))
    series = {"tcp": [Curve("a", steps, steps, steps / 1000, values, False, "")]}
    picture = curves("loss", series, looks({"tcp": "tcp"}), "loss", "steps")
    assert len(picture) < 150_000 and not re.search(r' d="[^"]*\d\.\d{3}', picture)


def test_a_link_holds_the_csv_itself() -> None:
    content = 'arm,"a, b",x\n1.5,ü,%\n'
    assert unquote(data_uri(content).partition(",")[2]) == content


def test_a_logarithmic_axis_leaves_out_what_lies_at_0() -> None:
    steps = np.array([0, 1, 10, 100, 1000])
    curve = Curve("launch", steps, steps, steps / 1.0, np.array([9.0, 4.0, 3.0, 2.0, 1.0]), False)
    of = looks({"saros": "tcp"})
    plain, log = (str(curves("alt", {"saros": [curve]}, of, "loss", "steps", log_x=log_x)) for log_x in (False, True))
    assert _points(plain) == len(steps) and _points(log) == len(steps) - 1


def _points(picture: str) -> int:
    """Of the thin line."""
    (drawn,) = re.findall(r'launch launch: ends at[^<]*</title>\s*<path d="([^"]+)"', picture)
    return len([x for x in re.findall(r"[ML] (\S+)", drawn) if float(x) >= 0])
