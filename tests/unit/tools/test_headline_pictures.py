"""The picture of a suite's README is the first figure of its page, as a file of its own."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tools.headline_pictures import ROOT, described, picture_of

PAGE = """<body><figure><svg role="img" aria-label="A &amp; B" viewBox="0 0 9 9" xmlns="http://www.w3.org/2000/svg">
<a href="runs/x.html"><path d="M 0 0" style="stroke: var(--s0)"/></a></svg></figure>
<figure><svg aria-label="second"></svg></figure></body>"""


def test_the_first_figure_stands_alone_in_colours_of_the_light_page() -> None:
    picture = picture_of(PAGE)
    assert ElementTree.fromstring(picture).attrib["viewBox"] == "0 0 9 9" and described(picture) == "A & B"
    assert "stroke: #0068a8" in picture and "var(" not in picture and "runs/" not in picture


def test_a_page_without_figures_says_so() -> None:
    with pytest.raises(SystemExit, match="run its suite first"):
        picture_of("<body></body>")


@pytest.mark.parametrize("path", sorted(ROOT.glob("suites/*/headline.svg")), ids=lambda path: path.parent.name)
def test_pictures_are_whole_and_shown(path: Path) -> None:
    text = path.read_text()
    ElementTree.fromstring(text)
    assert "var(" not in text and f"![{described(text)}](headline.svg)" in (path.parent / "README.md").read_text()
