"""The pages in docs/metrics/ agree with the docstrings of the metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.claims.metrics import METRICS, Metric
from tools import metric_pages


def test_every_metric_has_its_page_and_no_page_is_left_over() -> None:
    generated = metric_pages.pages()
    stored = {path.stem: path.read_text() for path in metric_pages.PAGES.glob("*.md")}
    assert stored == generated, "type `python -m tools.metric_pages`"


def test_every_page_says_what_its_metric_is() -> None:
    empty = [name for name, text in metric_pages.pages().items() if len(text.splitlines()) < 8]
    assert not empty, f"metrics without a docstring: {', '.join(empty)}"


def test_two_metrics_with_one_name_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_pages, "list_suites", lambda _: [Path("one"), Path("other")])
    monkeypatch.setattr(metric_pages, "suite_metrics", lambda _: {**METRICS, "gap": Metric("gap", "1", "lower")})
    with pytest.raises(ValueError, match="other: another metric has the name gap already"):
        metric_pages.pages()
