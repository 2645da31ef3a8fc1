"""A figure as SVG inside a page: its colours are variables of the page, and its ids are unique in the page."""

from __future__ import annotations

import hashlib
import io
import re
from html import escape

from markupsafe import Markup
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from scaleproof.report.figures.style import VARIABLES


def svg(figure: Figure, label: str, titles: dict[str, str] | None = None) -> Markup:
    """Inline SVG that keeps only the ids it refers to. `titles`: tooltips by the group id of an artist."""
    target = io.StringIO()
    FigureCanvasSVG(figure).print_svg(target, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = target.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r' d="[^"]+"', _short_path, text)
    for group, title in (titles or {}).items():
        text = text.replace(f'<g id="{group}">', f"<g><title>{escape(title)}</title>")
    text = _own_ids(text, hashlib.sha256(text.encode()).hexdigest()[:8])
    for placeholder, variable in VARIABLES.items():
        text = text.replace(placeholder, f"var(--{variable})")
    head = re.sub(r'\s(width|height)="[^"]*"', "", text[: text.index(">") + 1])
    head = head.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
    text = head + text[text.index(">") + 1 :]
    # Links on dots are a shortcut for the pointer; the table of launches has them for the keyboard.
    return Markup(text.replace("<a xlink:href=", '<a tabindex="-1" xlink:href='))


def _short_path(path: re.Match[str]) -> str:
    """Its coordinates to a hundredth of a pixel: half as long."""
    return re.sub(r"(\.\d\d)\d+", r"\1", path[0])


def _own_ids(text: str, prefix: str) -> str:
    """Keep only the ids that something refers to, and make them unique: several figures share a page."""
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))

    def rename(match: re.Match[str]) -> str:
        return f' id="{prefix}{match[1]}"' if match[1] in used else ""

    text = re.sub(r'\sid="([^"]+)"', rename, text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}\1)", text)
    return re.sub(r'href="#([^"]+)"', rf'href="#{prefix}\1"', text)
