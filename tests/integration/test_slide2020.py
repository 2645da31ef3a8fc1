"""Size ci of slide2020 really runs: SLIDE and torch learn in processes, and their records have what metrics need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.launch.supervisor import run_plan
from scaleproof.paths import PROJECT
from scaleproof.record.store import Store
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite

SUITE = PROJECT / "suites" / "slide2020"


def test_slide_and_sampled_softmax_run_in_processes(tmp_path: Path) -> None:
    outcome = run_plan(plan(load_suite(SUITE), "learning", "ci"), tmp_path, size="ci", deadline_s=120)
    store, found = Store(tmp_path), dict[str, dict[str, Any]]()
    for launch in outcome.launches:
        record, _ = store.load(launch)
        assert (record.status, record.failure) == ("ok", None)
        launched, samples = suite_metrics(SUITE), store.frame(record)
        found[record.case.value("arm")] = {
            name: metric.launch(record, samples) for name, metric in launched.items() if metric.launch is not None
        }
    assert found.keys() == {"filled", "sampled"}
    assert all(0 <= each["precision_at_1"] <= 1 and each["iteration_s"] > 0 for each in found.values())
    assert found["filled"]["active_share"] >= 100 * 250 / 400 and found["sampled"]["changed_rows"] <= 400
    assert 0 < found["filled"]["top_recall"] <= 1 and found["sampled"]["top_recall"] is None
