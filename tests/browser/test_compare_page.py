"""The page of a comparison in Chromium, from file://, with nothing beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from scaleproof.compare.comparison import Question, build
from scaleproof.compare.side_selection import select
from scaleproof.report.compare import write
from tests.browser.watched_page import CONTRAST, Watched
from tests.unit.compare.compare_records import FAST, SLOW, calibrate, code, launches
from tests.unit.records import case


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A regression, a case without a counterpart, a difference of environment and several warnings."""
    root = tmp_path_factory.mktemp("compare")
    launches(root, FAST, "a", code=code("0ld"), environment={"governor": "performance"})
    launches(root, SLOW, "b", at=1, code=code("new", digest="e"), environment={"governor": "powersave"})
    launches(root, FAST, "c", case=case(ranks=4, sizes=[1024], iterations=4, warmup=0), code=code("0ld"))
    calibrate(root)
    comparison = build(select("@commit:0ld", root), select("@commit:new", root), Question())
    return write(root / "alone" / "compare.html", comparison)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_stands_alone_and_can_be_read(page_file: Path, watched: Watched, scheme: str) -> None:
    page = watched.page
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(page_file.as_uri())
    assert [url for url in watched.requests if not url.startswith("data:")] == [page_file.as_uri()]
    assert page.locator(".forest svg").count() == 1 and page.get_by_text("3 regressions.").is_visible()
    assert page.evaluate(CONTRAST) == []


def test_a_metric_of_a_row_leads_to_its_definition_and_the_page_fits_a_phone(page_file: Path, watched: Watched) -> None:
    page = watched.page
    page.goto(page_file.as_uri())
    page.get_by_role("link", name="busbw").first.click()
    expect(page).to_have_url(re.compile("#busbw$"))
    expect(page.locator("#busbw")).to_be_visible()
    page.set_viewport_size({"width": 380, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_page_can_be_read_without_javascript(page_file: Path, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.locator("tbody tr").count() >= 7 and page.get_by_text("ranks (4 here, 2 there)").is_visible()
    assert (page.get_by_role("link", name="Download JSON").get_attribute("href") or "").startswith(
        "data:application/json;base64,"
    )
    context.close()
