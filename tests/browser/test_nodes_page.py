"""The page of a launch over several nodes in Chromium: where it stood, what the sniff test found, and what ran
elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.core.record_schema import Warning
from scaleproof.launch.preflight.slow_nodes import check
from scaleproof.record.store import Store
from scaleproof.record.write import RUN
from scaleproof.report.build import build
from tests.browser.watched_page import CONTRAST, Watched
from tests.unit.launch.test_slow_nodes import figure, sniff_of
from tests.unit.records import placed
from tests.unit.report.report_results import example

LEAVES = {"n0": "spine.leaf0", "n1": "spine.leaf0", "n2": "spine.leaf1"}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two launches of a case, one of them on three nodes of which the last is slow."""
    root = tmp_path_factory.mktemp("nodes")
    results, suite = example(root)
    store = Store(results)
    good = [record for record in store.records() if record.status == "ok" and record.case.fabric == "host"]
    first = next(record for record in good if sum(other.case_id == record.case_id for other in good) > 1)
    second = next(record for record in good if record.case_id == first.case_id and record.launch != first.launch)
    sniff = sniff_of("n0", "n1", "n2", multiplied={"n2": figure(40e9)})
    result = check(sniff)
    ranks = first.case.ranks
    changed: dict[str, dict[str, Any]] = {
        first.launch: {
            "placement": placed("n0", "n1", "n2", switches=LEAVES, ranks=ranks),
            "sniff": sniff,
            "preflight": [result],
            "warnings": [Warning(code=result.code, message=result.message, advice=result.advice)],
        },
        second.launch: {"placement": placed("n0", "n1", switches=LEAVES, ranks=ranks)},
    }
    for record in (first, second):
        (store.folder(record) / RUN).write_text(record.model_copy(update=changed[record.launch]).model_dump_json())
    return build(results, root / "reports", "smoke", [suite]).parent / "runs" / f"{first.launch}.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_tells_the_nodes_their_figures_and_the_slow_one(
    page_file: Path,
    watched: Watched,
    scheme: str,
) -> None:
    page = watched.page
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(page_file.as_uri())
    table = page.get_by_role("region", name="Nodes")
    assert table.locator("tbody tr").count() == 3
    assert table.locator("tbody tr").nth(2).get_by_role("cell").all_inner_texts()[:2] == ["spine.leaf1", "10.0.0.1"]
    assert table.locator("b").all_inner_texts() == ["40, slow"]
    assert page.get_by_text("n2 multiplies 40 GFLOP/s, 60% below the median of all").count() == 2
    assert page.get_by_text("this launch on c/n0, c/n1, c/n2; others of its case on c/n0, c/n1").is_visible()
    assert page.evaluate(CONTRAST) == []


def test_the_page_fits_a_phone(page_file: Path, watched: Watched) -> None:
    page = watched.page
    page.set_viewport_size({"width": 380, "height": 800})
    page.goto(page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
