"""Entries of a legend for levels of evidence and for the paper's points."""

from __future__ import annotations

from collections.abc import Collection

from markupsafe import Markup

from scaleproof.core.record_schema import Evidence
from scaleproof.report.figures.style import LegendEntry

STAR = "M14 1l1.600 4.200 4.400.2-3.500 2.800 1.200 4.300-3.700-2.500-3.700 2.500 1.200-4.300-3.500-2.800 4.400-.2z"
_LEVELS: dict[Evidence | None, tuple[str, str]] = {
    "measured": ("var(--muted)", '<path d="M1 7h26" stroke-width="1.8"/><circle cx="14" cy="7" r="4"/>'),
    "emulated": ("var(--page)", '<path d="M1 7h26" stroke-width="1.4"/><circle cx="14" cy="7" r="4"/>'),
    "simulated": (
        "var(--page)",
        '<path d="M1 7h26" stroke-width="1" stroke-dasharray="4 2"/><circle cx="14" cy="7" r="2"/>',
    ),
    None: ("var(--page)", '<circle cx="14" cy="7" r="4"/>'),
}
COMPUTED = "computed by a formula or a model"
_PUBLISHED = {
    True: ("var(--ink)", "the paper"),
    False: ("var(--page)", "the paper, recalled or derived: never judged"),
}


def level_marks(levels: Collection[Evidence | None], published: Collection[bool]) -> list[LegendEntry]:
    """An entry per level that occurs (None: no level, computed), and per kind of published point: judged (True, filled)
    or not (False, hollow)."""
    entries = [
        LegendEntry(_svg(fill, "var(--muted)", shape), level or COMPUTED)
        for level, (fill, shape) in _LEVELS.items()
        if level in levels
    ]
    stars = [
        LegendEntry(_svg(fill, "var(--ink)", f'<path d="{STAR}"/>'), meaning)
        for judged, (fill, meaning) in _PUBLISHED.items()
        if judged in published
    ]
    return [*entries, *stars]


def public_mark(judged: bool = True) -> LegendEntry:
    """The star of values that others published, where these are logs of no paper, or an author's tables."""
    fill, name = ("var(--ink)", "public log") if judged else ("var(--page)", "public table, never judged")
    return LegendEntry(_svg(fill, "var(--ink)", f'<path d="{STAR}"/>'), name)


def _svg(fill: str, ink: str, shape: str) -> Markup:
    frame = Markup('<svg viewBox="0 0 28 14" aria-hidden="true" fill="{}" stroke="{}">{}</svg>')
    return frame.format(fill, ink, Markup(shape))
