"""The pages of docs/metrics/ as one page of the report, for readers without the repository."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup

from scaleproof.paths import PROJECT
from scaleproof.report.pages import Pages

DOCS = PROJECT / "docs" / "metrics"


@dataclass(frozen=True, slots=True)
class Entry:
    """The page of one metric."""

    name: str
    html: Markup


def write(pages: Pages, docs: Path = DOCS) -> None:
    """Write metrics.html."""
    pages.write(
        "metrics.html",
        "metrics.html.j2",
        entries=[Entry(path.stem, render(path.read_text())) for path in sorted(docs.glob("*.md"))],
    )


def render(text: str) -> Markup:
    """Markdown to HTML with raw HTML shown as text; links between metric pages become links on this page."""
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    html = re.sub(r'href="(?:\./)?([A-Za-z0-9_]+)\.md(?:#[^"]*)?"', r'href="#\1"', html)
    html = re.sub(r"<(/?)h([1-4])>", lambda match: f"<{match[1]}h{int(match[2]) + 1}>", html)
    # Links to files outside docs/metrics/ are removed: the report does not have these files.
    return Markup(re.sub(r'<a href="(?!#|https?:)[^"]*">(.*?)</a>', r"\1", html, flags=re.DOTALL))
