"""Which series of a headline figure have no value, and why."""

from __future__ import annotations

from collections.abc import Sequence

from scaleproof.claims.claims_file import ClaimResult
from scaleproof.report.figures.kinds import Series
from scaleproof.report.headlines.form import FigureForm

NOT_RUN = "not run at this size"


def missing_values(figure: FigureForm, series: Sequence[Series], claims: Sequence[ClaimResult]) -> str:
    """Sentences that name the series without a value of ours, by the reason that their claim gives; empty if all have
    one."""
    names: dict[str, list[str]] = {}
    for form, drawn in zip(figure.series, series, strict=True):
        if not drawn.has_ours:
            names.setdefault(_reason(form.claim, claims), []).append(drawn.name)
    if sum(map(len, names.values())) == len(series) and list(names) == [""]:
        return "No launch gives this figure a value yet."
    return " ".join(_sentence(reason, of) for reason, of in names.items())


def _reason(claim: str | None, claims: Sequence[ClaimResult]) -> str:
    result = next((each for each in claims if each.id == claim), None)
    if result is None:
        return ""
    return NOT_RUN if result.verdict == NOT_RUN else result.reason


def _sentence(reason: str, names: Sequence[str]) -> str:
    listed = ("; " if any("," in name for name in names) else ", ").join(names)
    if not reason:
        return f"No launch gives a value yet for: {listed}."
    return f"Not run at this size: {listed}." if reason == NOT_RUN else f"No value for {listed}: {reason}."
