"""How errors between levels of evidence change with the number of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scaleproof.report.levels_compared import LEVELS, Pair, signed
from scaleproof.report.sections import Cell, Row, Table
from scaleproof.stats.error_trend import ErrorAt, trend
from scaleproof.stats.intervals import Interval, median, median_interval

COLUMNS = ["levels", "arm", "ranks", "error at each, in that order", "slope per doubling of ranks"]
CAPTION = (
    "Trends of these errors over ranks: the slope of a line through an arm's errors over the doublings of ranks, with "
    "its interval over launches; for all arms together the median of their slopes, with its interval over arms."
)
ALL = "all arms and networks"


def trends_tables(pairs: Iterable[Pair]) -> list[Table]:
    """A table with a row per arm that two levels have at several numbers of ranks, and one for all arms of these
    levels; none without such an arm."""
    groups: dict[tuple[int, int, tuple[str, str], str], list[Pair]] = {}
    for pair in pairs:
        key = (LEVELS.index(pair.upper.level), LEVELS.index(pair.lower.level), pair.curve, pair.upper.arm)
        groups.setdefault(key, []).append(pair)
    rows: list[Row] = []
    slopes: dict[str, list[float]] = {}
    for _, group in sorted(groups.items(), key=lambda item: item[0]):
        ordered = sorted(group, key=lambda pair: pair.ranks)
        if (found := trend([_at(pair) for pair in ordered])) is not None:
            slopes.setdefault(_levels(group), []).append(found[0])
            rows.append(Row(group[0].curve[1], _cells(ordered, *found)))
    rows += [_median_over_arms(levels, values) for levels, values in slopes.items()]
    return [Table(CAPTION, COLUMNS, rows)] if rows else []


def _at(pair: Pair) -> ErrorAt:
    return ErrorAt(pair.ranks, pair.upper.values, pair.lower.values, pair.upper.level == "simulated")


def _levels(pairs: Sequence[Pair]) -> str:
    return f"{pairs[0].upper.level} / {pairs[0].lower.level}"


def _cells(pairs: Sequence[Pair], slope: float, interval: Interval | None) -> list[Cell]:
    return [
        Cell(_levels(pairs)),
        Cell(pairs[0].upper.arm),
        Cell(", ".join(str(pair.ranks) for pair in pairs)),
        Cell(", ".join(signed(pair.error) for pair in pairs)),
        _slope(slope, interval),
    ]


def _median_over_arms(levels: str, slopes: Sequence[float]) -> Row:
    cells = [Cell(levels), Cell(f"{len(slopes)} arms"), Cell(""), Cell("")]
    return Row(ALL, [*cells, _slope(median(slopes), median_interval(slopes))])


def _slope(slope: float, interval: Interval | None) -> Cell:
    return Cell(signed(slope), f"[{signed(interval.low)}, {signed(interval.high)}]" if interval else "")
