"""Chromium, and a page that fails the test for what it requests from elsewhere or complains about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from scaleproof.report.picture import ARGUMENTS, chromium
from tests.browser.watched_page import Watched


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme="light")
    opened = Watched(context.new_page())
    yield opened
    context.close()
    outside = [url for url in opened.requests if not url.startswith(("file://", "data:"))]
    assert outside == []
    assert opened.complaints == []
