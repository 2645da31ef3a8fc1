"""A comparison as a page that needs no other file: numbers, forest plots, differences of configuration and
environment, warnings."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from scaleproof.compare.comparison_schema import Comparison, PairOut, Row
from scaleproof.report.figures.forest import Line, forest
from scaleproof.report.glossary import DOCS, Entry, render
from scaleproof.report.numbers import nbytes, significant
from scaleproof.report.pages import Pages

MEANING = {
    "worse": "significantly worse in B, by more than the noise floor",
    "better": "significantly better in B, by more than the noise floor",
    "changed": "significantly different, by more than the noise floor; no direction of this metric is better",
    "no difference": "the whole interval lies within the noise floor, or all values are equal",
    "inconclusive": "these launches neither show a difference nor rule one out, or no noise floor is known",
    "different machines": "A and B ran on different machines, so a difference may be the machines'",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A pair of cases and its picture. `open`: its details are shown at first."""

    pair: PairOut
    picture: Markup
    open: bool


def write(path: Path, comparison: Comparison) -> Path:
    """Write the page and create its folder. Equal comparisons give equal bytes."""
    changes = {"worse", "better", "changed", "different machines"}
    parts = [
        Part(
            pair,
            picture(pair),
            len(comparison.pairs) <= 3 or pair.all_failed or any(row.change in changes for row in pair.rows),
        )
        for pair in comparison.pairs
    ]
    names = sorted({row.metric for row in comparison.rows})
    entries = [Entry(name, render(page.read_text())) for name in names if (page := DOCS / f"{name}.md").exists()]
    download = (
        "data:application/json;base64," + base64.b64encode(comparison.model_dump_json(indent=1).encode()).decode()
    )
    pages = Pages(path.parent, "", [])
    counts = [(change, count, MEANING[change]) for change, count in comparison.counts.items() if count]
    return pages.write(
        path.name,
        "compare.html.j2",
        comparison=comparison,
        parts=parts,
        entries=entries,
        download=download,
        counts=counts,
        meanings=MEANING,
    )


def picture(pair: PairOut) -> Markup:
    """The forest plot of a pair; empty when it has no rows."""
    return forest(f"B relative to A, {pair.title}", [_line(row) for row in pair.rows]) if pair.rows else Markup("")


def _line(row: Row) -> Line:
    name = row.metric + (f", {nbytes(row.nbytes)}" if row.nbytes is not None else "")
    tooltip = f"{name}: {significant(row.a)} in A, {significant(row.b)} in B ({row.unit}); {row.change}: {row.why}"
    return Line(name, row.factor, row.low, row.high, row.floor, row.change, tooltip)
