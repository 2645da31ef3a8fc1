"""A comparison in a few lines of Markdown, for the summary of a job in continuous integration."""

from __future__ import annotations

import html
from collections.abc import Sequence

from scaleproof.compare.comparison_schema import Comparison, PairOut, Row, SideOut
from scaleproof.report.numbers import nbytes, percent, significant
from scaleproof.stats.intervals import CONFIDENCE

MOST_ROWS = 40
"""Rows in the summary; the page and the JSON have all of them."""
_QUIET = ("no difference", "inconclusive")
_COLUMNS = (
    "case",
    "metric",
    "A",
    "B",
    "unit",
    "B against A",
    f"{100 * CONFIDENCE:.0f} % interval",
    "noise floor",
    "finding",
)


def summary(comparison: Comparison) -> str:
    """The outcome, both sides, the rows that changed, cases without a good launch, and warnings."""
    counts = (
        ", ".join(f"{count} {change}" for change, count in comparison.counts.items() if count) or "nothing compared"
    )
    lines = [
        f"### Scaleproof: {comparison.outcome}",
        "",
        f"{_text(comparison.outcome_why)}." if comparison.outcome_why else "",
        _side("A (base)", comparison.a),
        _side("B", comparison.b),
        "",
        f"{len(comparison.rows)} rows: {counts}.",
    ]
    changed = [(pair, row) for pair in comparison.pairs for row in pair.rows if row.change not in _QUIET]
    if changed:
        changed.sort(key=lambda pair_and_row: not pair_and_row[1].regression)
        cells = [_COLUMNS, ["---"] * len(_COLUMNS)]
        cells += [_row(pair, row) for pair, row in changed[:MOST_ROWS]]
        lines += ["", *(f"| {' | '.join(row)} |" for row in cells)]
        lines += [f"\n{len(changed) - MOST_ROWS} more rows changed."] if len(changed) > MOST_ROWS else []
    failed = [_text(pair.title) for pair in comparison.pairs if pair.all_failed]
    lines += ["", *(f"- no launch of B ended well: {title}" for title in failed)] if failed else []
    if comparison.warnings:
        lines += ["", f"<details><summary>{len(comparison.warnings)} warnings</summary>", ""]
        lines += [f"- `{warning.code}` {_text(warning.message)}" for warning in comparison.warnings]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n\n"


def _side(name: str, side: SideOut) -> str:
    lost = f", {side.failed} failed" if side.failed else ""
    machines, codes = ", ".join(side.machines), _text("; ".join(side.codes))
    return f"- {name}: {side.ok} good launches{lost}, machine {machines}, code {codes}, from {side.first}"


def _row(pair: PairOut, row: Row) -> Sequence[str]:
    scale, unit = row.scale
    a, b = (significant(None if value is None else value * scale) for value in (row.a, row.b))
    interval = "" if row.low is None or row.high is None else f"{_change(row.low)} to {_change(row.high)}"
    name = row.metric + ("" if row.nbytes is None else f", {nbytes(row.nbytes)}")
    finding = "**regression**" if row.regression else row.change
    return [
        _text(pair.title),
        name,
        a,
        b,
        _text(unit),
        _change(row.factor),
        interval,
        "unknown" if row.floor is None else percent(row.floor),
        finding,
    ]


def _change(ratio: float | None) -> str:
    return "" if ratio is None else f"{100 * (ratio - 1):+.1f} %"


def _text(text: str) -> str:
    """The text escaped, so that none of it is read as Markdown or HTML."""
    escaped = html.escape(" ".join(text.split()), quote=False)
    return "".join(f"\\{character}" if character in "\\`*_[]|" else character for character in escaped)
