"""The figure of levels of evidence in Chromium."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from scaleproof.report import suite as suite_page
from scaleproof.report.data import load
from scaleproof.report.pages import Pages
from tests.unit.report.report_levels import levels_example


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("levels")
    results, suite = levels_example(root)
    (data,) = load(results, "full", [suite])
    suite_page.write(Pages(root, "full", ["levels"]), data, {})
    return root / "levels.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_levels_are_named_and_marks_say_their_values(page_file: Path, browser: Browser, scheme: str) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    complaints: list[str] = []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(page_file.as_uri())
    section = page.locator("#levels")
    assert section.is_visible()
    for label in ("measured", "emulated", "simulated", "the paper", "recalled or derived: never judged"):
        assert section.locator("ul.key li", has_text=re.compile(f"{label}$")).count() == 1
    figure = section.locator("figure").first
    assert figure.locator("text", has_text="tcp, emulated").is_visible()
    titles = figure.locator("title").all_text_contents()
    assert any(title.startswith("tcp, simulated, 8 ranks: ") for title in titles)
    assert "levels.dnn: 9.50x at 16 nodes (paper)" in titles
    assert section.locator("caption", has_text="Errors between levels").is_visible()
    box = figure.bounding_box()
    texts = [found for one in figure.locator("text").all() if (found := one.bounding_box()) is not None]
    assert box is not None and all(text["x"] + text["width"] <= box["x"] + box["width"] + 1 for text in texts), (
        "nothing is cut off"
    )
    assert complaints == []
    page.context.close()


def test_tables_of_levels_fit_a_laptop(page_file: Path, browser: Browser) -> None:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(page_file.as_uri())
    wide = "[...document.querySelectorAll('#levels .scroll')].map((each) => each.scrollWidth - each.clientWidth)"
    assert page.evaluate(wide) == [0, 0, 0, 0]
    page.context.close()
