"""The menu of suites, with more of them than a line holds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import Browser, Page

from scaleproof.report.pages import Pages
from tests.browser.watched_page import Watched

SUITES = [f"authors_of_{2000 + number}" for number in range(33)]
WIDTHS = [1280, 400]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A page of the last suite without content."""
    return Pages(tmp_path, "smoke", SUITES).write("page.html", "base.html.j2", suite=SimpleNamespace(name=SUITES[-1]))


def inside(page: Page, width: int) -> list[str]:
    """Suites whose links can be seen without scrolling."""
    boxes = [(link.text_content() or "", link.bounding_box()) for link in page.locator("nav .menu a").all()]
    return [name for name, box in boxes if box and box["x"] >= 0 and box["x"] + box["width"] <= width and box["y"] > 0]


@pytest.mark.parametrize("width", WIDTHS)
def test_every_suite_of_33_is_in_the_menu_and_nothing_scrolls_sideways(
    written: Path, watched: Watched, width: int
) -> None:
    page = watched.page
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(written.as_uri())
    assert not page.locator("nav .menu a").first.is_visible()
    page.get_by_text("Suites (33)").click()
    assert inside(page, width) == SUITES
    for part in ("document.documentElement", "document.querySelector('nav')", "document.querySelector('.menu ul')"):
        assert page.evaluate(f"{part}.scrollWidth <= {part}.clientWidth"), part
    assert page.locator("nav .menu a[aria-current=page]").all_text_contents() == SUITES[-1:]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_menu_opens_and_closes_by_keyboard(written: Path, watched: Watched, width: int) -> None:
    page = watched.page
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(written.as_uri())
    page.locator("nav summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == SUITES[0]
    page.keyboard.press("Escape")
    assert not page.locator("nav .menu a").first.is_visible()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    page.locator("nav").get_by_text("machine").focus()
    assert not page.locator("nav .menu a").first.is_visible()


def test_the_menu_opens_without_javascript(written: Path, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(written.as_uri())
    page.get_by_text("Suites (33)").click()
    assert page.locator("nav .menu a").last.is_visible()
    context.close()
