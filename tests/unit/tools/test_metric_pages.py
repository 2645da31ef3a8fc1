"""The pages in docs/metrics/ agree with the docstrings of the metrics."""

from __future__ import annotations

from tools import metric_pages


def test_every_metric_has_its_page_and_no_page_is_left_over() -> None:
    generated = metric_pages.pages()
    stored = {path.stem: path.read_text() for path in metric_pages.PAGES.glob("*.md")}
    assert stored == generated, "type `python -m tools.metric_pages`"


def test_every_page_says_what_its_metric_is() -> None:
    empty = [name for name, text in metric_pages.pages().items() if len(text.splitlines()) < 8]
    assert not empty, f"metrics without a docstring: {', '.join(empty)}"
