"""Renders templates: everything that is shown is escaped, every page carries its own style and script."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unicodedata import category

import jinja2
from markupsafe import Markup

import scaleproof
from scaleproof.report import numbers, tags, verdicts
from scaleproof.report.data import anchor

_HERE = Path(__file__).parent
NO_RESULT = ("ci", "smoke")
"""Sizes whose numbers only show that everything works."""


def _shown(value: Any) -> str:
    return "–" if value is None else str(value)


def _plain(value: Any) -> Any:
    """Control characters, also those that turn the direction of a text, made visible."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(
        letter.encode("unicode_escape").decode() if category(letter)[0] == "C" and letter not in "\t\n" else letter
        for letter in value
    )


class Pages:
    """Writes pages into one folder."""

    def __init__(self, folder: Path, size: str, suites: list[str]) -> None:
        self.folder = folder
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=_plain,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "significant": numbers.significant,
            "exact": numbers.exact,
            "nbytes": numbers.nbytes,
            "anchor": anchor,
            "shown": _shown,
        }
        self._environment.filters |= {"marks": tags.marks, "axes": tags.axes, "shown_rule": verdicts.shown_rule}
        self._environment.globals |= {
            "size": size,
            "suites": suites,
            "small": size in NO_RESULT,
            "bracket": numbers.bracket,
            "marks": verdicts.PROVENANCE,
            "version": scaleproof.__version__,
            "css": Markup((_HERE / "static" / "report.css").read_text()),
            "js": Markup((_HERE / "static" / "report.js").read_text()),
        }

    def write(self, name: str, template: str, **values: Any) -> Path:
        """Render one page; `name` may lie one folder down."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._environment.get_template(template).render(up="../" * name.count("/"), **values))
        return path
