"""A comparison in a few lines of Markdown, for the summary of a job in continuous integration."""

from __future__ import annotations

import html
from collections.abc import Sequence

from scaleproof.compare.comparison_schema import Comparison, PairOut, Row, SideOut
from scaleproof.report.numbers import nbytes, percent, significant
from scaleproof.stats.intervals import CONFIDENCE

SHOWN = 40
"""At most so many rows: the page and the JSON have all of them."""
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


def summary(found: Comparison) -> str:
    """The outcome, both sides, the rows that changed, cases without a good launch, and warnings."""
    counted = ", ".join(f"{count} {change}" for change, count in found.counts.items() if count) or "nothing compared"
    lines = [
        f"### Scaleproof: {found.outcome}",
        "",
        f"{_text(found.outcome_why)}." if found.outcome_why else "",
        _side("A (base)", found.a),
        _side("B", found.b),
        "",
        f"{len(found.rows)} rows: {counted}.",
    ]
    changed = [(pair, row) for pair in found.pairs for row in pair.rows if row.change not in _QUIET]
    if changed:
        changed.sort(key=lambda both: not both[1].regression)
        cells = [_COLUMNS, ["---"] * len(_COLUMNS)]
        cells += [_row(pair, row) for pair, row in changed[:SHOWN]]
        lines += ["", *(f"| {' | '.join(row)} |" for row in cells)]
        lines += [f"\n{len(changed) - SHOWN} more rows changed."] if len(changed) > SHOWN else []
    failed = [_text(pair.title) for pair in found.pairs if pair.all_failed]
    lines += ["", *(f"- no launch of B ended well: {title}" for title in failed)] if failed else []
    if found.warnings:
        lines += ["", f"<details><summary>{len(found.warnings)} warnings</summary>", ""]
        lines += [f"- `{warning.code}` {_text(warning.message)}" for warning in found.warnings]
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
    """Nothing that was written elsewhere is read as Markdown or HTML."""
    escaped = html.escape(" ".join(text.split()), quote=False)
    return "".join(f"\\{character}" if character in "\\`*_[]|" else character for character in escaped)
