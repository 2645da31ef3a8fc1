"""The pages in Chromium, from file://, as a reader has them."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from scaleproof.report.build import build
from tests.browser.watched_page import CONTRAST, Watched
from tests.unit.report.report_results import HOSTILE, example


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    results, suite = example(root)
    return build(results, root / "reports", "smoke", [suite])


def rows(page: Page) -> list[str]:
    """Ids of the claims that can be seen, in their order."""
    return [text.strip() for text in page.locator("table.claims tbody tr:visible a.id").all_text_contents()]


def test_pages_ask_for_nothing_but_themselves(index: Path, watched: Watched) -> None:
    for page in [
        index,
        index.parent / "example.html",
        index.parent / "metrics.html",
        *sorted((index.parent / "runs").glob("*.html"))[:3],
    ]:
        watched.requests.clear()
        watched.page.goto(page.as_uri())
        assert [url for url in watched.requests if not url.startswith("data:")] == [page.as_uri()]


def test_a_chip_shows_only_its_verdict_and_survives_a_reload(index: Path, watched: Watched) -> None:
    page = watched.page
    page.goto(index.as_uri())
    everything = rows(page)
    assert len(everything) == 11
    page.locator("button[data-verdict='not reproduced']").click()
    assert rows(page) == ["example.claim2"]
    assert page.locator("button[data-verdict='not reproduced']").get_attribute("aria-pressed") == "true"
    assert "verdict=not+reproduced" in page.url
    page.reload()
    assert rows(page) == ["example.claim2"]
    assert page.locator("#shown").text_content() == "1 of 11 rows shown"
    page.get_by_role("button", name="Show all").click()
    assert rows(page) == everything


def test_a_tag_shows_only_its_launches_and_survives_a_reload(index: Path, watched: Watched) -> None:
    page = watched.page
    page.goto(index.with_name("example.html").as_uri())
    launches = page.locator("#t-launches tbody tr")
    everything = launches.count()
    page.get_by_text("Filter by tag").click()
    page.locator("select[data-axis=topology]").select_option("closed-ring")
    visible = [row.get_attribute("data-tags") or "" for row in launches.all() if row.is_visible()]
    assert len(visible) == 12 and all("topology=closed-ring" in tags.split() for tags in visible)
    page.reload()
    assert sum(row.is_visible() for row in launches.all()) == 12
    assert (
        page.locator("select[data-axis=topology]").input_value() == "closed-ring"
        and page.locator("select[data-axis=topology]").is_visible()
    )
    page.get_by_role("button", name="Show all").click()
    assert (
        sum(row.is_visible() for row in launches.all()) == everything
        and page.locator("select[data-axis=topology]").input_value() == ""
    )


def test_search_and_sort_work_by_keyboard_and_survive_a_reload(index: Path, watched: Watched) -> None:
    page = watched.page
    page.goto(index.as_uri())
    page.get_by_label("Search").fill("claim3")
    assert rows(page) == ["example.claim3"]
    page.get_by_label("Search").fill("")
    header = page.locator("#t-claims thead").get_by_role("button", name="Ours, interval")
    header.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.locator("#t-claims th[aria-sort=descending]").count() == 1
    page.reload()
    claims = page.locator("#t-claims tbody tr:visible a.id").all_text_contents()
    assert claims == [f"example.claim{number}" for number in range(7, -1, -1)]


def test_from_the_first_screen_to_the_log_of_a_rank_in_four_clicks(index: Path, watched: Watched) -> None:
    page = watched.page
    page.goto(index.as_uri())
    page.get_by_role("link", name="example.claim2").click()
    card = page.locator("#claim-example\\.claim2[open]")  # a script of the new page opens it
    expect(card).to_contain_text("all of it within 20 % of 6.5")
    card.locator("a[href^='runs/']").click()
    expect(page.locator(".copy code")).to_contain_text("scaleproof run example throughput --size smoke")
    page.locator(".fail").get_by_role("link").click()
    line = page.locator(".log:visible li", has_text="owned").first
    line.wait_for(state="visible")  # the browser goes to the log after the click has been told
    line.get_by_role("link").click()
    expect(page).to_have_url(re.compile("#rank-"))


def test_hostile_text_is_shown_as_text(index: Path, watched: Watched) -> None:
    page = watched.page
    page.goto(index.as_uri())
    assert '<script>document.title = "owned"</script>' in page.locator("table.claims").first.inner_text()
    for target in [index.parent / "example.html", *(index.parent / "runs").glob("*.html")]:
        page.goto(target.as_uri())
        assert page.title() != "owned"
    assert "<script>" in HOSTILE


@pytest.mark.parametrize("name", ["index.html", "example.html", "metrics.html", "runs"])
def test_nothing_is_wider_than_a_telephone(index: Path, watched: Watched, name: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": 390, "height": 844})
    for target in sorted((index.parent / name).glob("*.html")) if name == "runs" else [index.parent / name]:
        page.goto(target.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, target.name


def test_a_long_rule_is_folded_behind_its_finding(index: Path, watched: Watched) -> None:
    watched.page.goto(index.as_uri())
    rule = watched.page.locator("table.claims td.rule", has=watched.page.locator("details.rests")).first
    points = rule.locator("li").first
    assert not points.is_visible()
    rule.locator("summary").click()
    assert points.is_visible()


def background(page: Page) -> int:
    """How light the page is, 0 to 255."""
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour.removeprefix("rgb(").rstrip(")").split(",")) // 3


def test_dark_follows_the_system_and_the_switch_remembers(index: Path, watched: Watched) -> None:
    page = watched.page
    page.goto(index.as_uri())
    assert background(page) > 240
    page.emulate_media(color_scheme="dark")
    assert background(page) < 40
    page.locator("#theme").click()
    assert background(page) > 240
    # Chromium writes localStorage a little after the click; a reload at once may still read what was there before.
    deadline = time.monotonic() + 10
    page.reload()
    while background(page) <= 240 and time.monotonic() < deadline:
        page.reload()
    assert background(page) > 240


def test_print_is_white_also_from_a_dark_page(index: Path, watched: Watched) -> None:
    page = watched.page
    page.emulate_media(color_scheme="dark", media="print")
    page.goto(index.as_uri())
    assert background(page) > 240
    assert not page.locator("header.top").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_a_contrast_of_four_and_a_half(index: Path, watched: Watched, scheme: str) -> None:
    page = watched.page
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    failed = next(path for path in sorted((index.parent / "runs").glob("*.html")) if 'class="fail"' in path.read_text())
    for target in (index, index.parent / "example.html", failed):
        page.goto(target.as_uri())
        assert page.evaluate(CONTRAST) == [], target.name


def test_pages_can_be_read_without_javascript(index: Path, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(index.as_uri())
    assert len(rows(page)) == 11
    assert not page.get_by_label("Search").is_visible()
    page.goto((index.parent / "example.html").as_uri())
    assert page.locator(".panel svg").count() >= 5
    href = page.get_by_role("link", name="Download CSV").first.get_attribute("href") or ""
    assert href.startswith("data:text/csv") and "throughput_samples_per_s" in href
    context.close()


def test_a_picture_of_a_page_is_a_png(index: Path, tmp_path: Path) -> None:
    target = tmp_path / "docs" / "report.png"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "scaleproof.report.picture",
            str(index),
            str(target),
            "--width",
            "800",
            "--height",
            "600",
        ],
        check=True,
        timeout=60,
    )
    assert target.read_bytes().startswith(b"\x89PNG")
