"""Renders templates. All values are escaped, and every page contains its style and script."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category

import jinja2
from markupsafe import Markup

import scaleproof
from scaleproof.core.evidence_marks import TRAJECTORY, TRAJECTORY_MEANING
from scaleproof.report import attained, numbers, tags, verdicts
from scaleproof.report.data import anchor

_FOLDER = Path(__file__).parent
NO_RESULT = ("ci", "smoke")
"""Sizes whose numbers only show that everything works: they are no results."""


def _text_or_dash(value: Any) -> str:
    return "–" if value is None else str(value)


def _plain(value: Any) -> Any:
    """Make control characters visible, also those that change the direction of a text."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(
        letter.encode("unicode_escape").decode() if category(letter)[0] == "C" and letter not in "\t\n" else letter
        for letter in value
    )


class Fact(NamedTuple):
    """A fact in the head of a page."""

    name: str
    value: str


class Pages:
    """Writes pages into one folder."""

    def __init__(self, folder: Path, size: str, suites: list[str]) -> None:
        self.folder = folder
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=_plain,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "significant": numbers.significant,
            "exact": numbers.exact,
            "percent": numbers.percent,
            "nbytes": numbers.nbytes,
            "attained_share": attained.share,
            "attained_reason": attained.reason,
            "anchor": anchor,
            "shown": _text_or_dash,
        }
        self._environment.filters |= {"marks": tags.marks, "axes": tags.axes, "shown_rule": verdicts.shown_rule}
        self._environment.globals |= {
            "size": size,
            "suites": suites,
            "small": size in NO_RESULT,
            "bracket": numbers.bracket,
            "marks": verdicts.PROVENANCE,
            "trajectory": TRAJECTORY,
            "trajectory_meaning": TRAJECTORY_MEANING,
            "version": scaleproof.__version__,
            "css": Markup((_FOLDER / "static" / "report.css").read_text()),
            "js": Markup((_FOLDER / "static" / "report.js").read_text()),
        }

    def write(self, name: str, template: str, **values: Any) -> Path:
        """Render one page; `name` may contain a folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._environment.get_template(template).render(up="../" * name.count("/"), **values))
        return path
