"""A figure says which of its series have no value, and why."""

from __future__ import annotations

from scaleproof.report.figures.kinds import Mark, Series
from scaleproof.report.figures.style import Look
from scaleproof.report.headlines.form import FigureForm
from scaleproof.report.headlines.missing_values import missing_values
from tests.unit.report.report_results import claim

MARK = Mark(1, 2.0, None, None, "measured", True, "", "")
CLAIMS = [
    claim("reproduced", 0, ()),
    claim("not run at this size", 1, ()),
    claim("inconclusive", 2, ()).model_copy(update={"reason": "8 of 12 launches excluded: saturated"}),
]


def sentence(*claims: str, drawn: tuple[str, ...] = (), of: str = "of") -> str:
    """For a series of each claim, named after it; those `drawn` have a value."""
    figure = FigureForm.model_validate(
        {
            "id": "gain",
            "kind": "dots",
            "title": "Gain",
            "caption": "Gain.",
            "alt": "Gain",
            "y": {"label": "gain"},
            "series": [{"name": f"{of} {name}", "claim": f"example.{name}"} for name in claims],
            "claims": ["example.claim0"],
        }
    )
    looks = Look("x", 0, "o", 0)
    series = [Series(f"{of} {name}", looks, (MARK,) if name in drawn else (), (), (), None) for name in claims]
    return missing_values(figure, series, CLAIMS)


def test_series_are_named_by_the_reason_that_their_claim_gives() -> None:
    assert sentence("claim0", "claim1", "claim2", "unjudged", drawn=("claim0",)) == (
        "Not run at this size: of claim1. No value for of claim2: 8 of 12 launches excluded: saturated. "
        "No launch gives a value yet for: of unjudged."
    )


def test_names_with_commas_are_told_apart() -> None:
    assert sentence("claim1", of="all, as in") == "Not run at this size: all, as in claim1."
    assert (
        sentence("claim1", "claim1", of="all, as in") == "Not run at this size: all, as in claim1; all, as in claim1."
    )


def test_nothing_is_said_where_all_series_have_a_value() -> None:
    assert sentence("claim0", drawn=("claim0",)) == ""


def test_a_figure_without_any_value_and_reason_is_one_line() -> None:
    assert sentence("unjudged", "unheard") == "No launch gives this figure a value yet."
