"""Writes a picture of a page, rendered by Chromium, for the README:
python -m scaleproof.report.picture reports/index.html docs/report.png"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from scaleproof.spec.errors import SpecError

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str:
    """Path of the system's Chromium; SpecError with advice if there is none."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        raise SpecError("no Chromium on this machine; on Debian: apt-get install -y chromium")
    return executable


def picture(page: Path, target: Path, width: int = 1400, height: int | None = 1000, dark: bool = False) -> Path:
    """Write a PNG of a page, `width` CSS pixels wide; height None: the whole page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        try:
            tab = browser.new_page(
                viewport={"width": width, "height": height or 1000}, color_scheme="dark" if dark else "light"
            )
            tab.goto(page.resolve().as_uri())
            target.parent.mkdir(parents=True, exist_ok=True)
            tab.screenshot(path=target, full_page=height is None)
        finally:
            browser.close()
    return target


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--height", type=int, default=1000)
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    print(picture(options.page, options.target, options.width, options.height, options.dark))
