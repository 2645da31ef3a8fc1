"""`python -m tools.headline_pictures REPORTS SUITE ...`: writes the first figure of each suite's page in a folder of
pages to `suites/SUITE/headline.svg`, which its README shows: in the colours of the light page, on white."""

from __future__ import annotations

import argparse
import html
import re
from pathlib import Path

from scaleproof.report.figures.style import VARIABLES, light

ROOT = Path(__file__).resolve().parents[1]
PICTURE = "headline.svg"


def picture_of(page: str) -> str:
    """The first figure of a page as a file of its own. SystemExit where the page has none."""
    if (found := re.search(r"<figure.*?(<svg.*?</svg>)", page, re.DOTALL)) is None:
        raise SystemExit("this page has no figure: run its suite first")
    text = re.sub(r"</?a\b[^>]*>", "", found[1])  # links lead to pages that are not beside the picture
    for placeholder, variable in VARIABLES.items():
        text = text.replace(f"var(--{variable})", light(placeholder))
    head, rest = text[: text.index(">") + 1], text[text.index(">") + 1 :]
    return f'{head}<rect width="100%" height="100%" fill="#ffffff"/>{rest}\n'


def described(picture: str) -> str:
    """What the picture shows, in words."""
    found = re.search(r'aria-label="([^"]*)"', picture)
    return html.unescape(found[1]) if found else ""


def main(arguments: list[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m tools.headline_pictures", description=__doc__)
    parser.add_argument("reports", type=Path, metavar="REPORTS", help="a folder of pages that `scaleproof report` made")
    parser.add_argument("suites", nargs="+", metavar="SUITE")
    options = parser.parse_args(arguments)
    for suite in options.suites:
        picture = picture_of((options.reports / f"{suite}.html").read_text())
        path = ROOT / "suites" / suite / PICTURE
        path.write_text(picture)
        print(f"{path.relative_to(ROOT)}: ![{described(picture)}]({PICTURE})")


if __name__ == "__main__":
    main()
