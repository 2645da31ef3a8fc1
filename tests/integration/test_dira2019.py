"""Size ci of suite dira2019 in processes: both schedulers are trained, on the same plants, noise and channels."""

from __future__ import annotations

from pathlib import Path

from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite

SUITES = Path(__file__).parents[2] / "suites"


def test_schedulers_are_trained_on_the_same_plants(tmp_path: Path) -> None:
    planned = plan(load_suite("dira2019", SUITES), "costs", "ci")
    outcome = run_plan(planned, tmp_path / "results", size="ci", deadline_s=120)
    records = [Store(tmp_path / "results").load(launch)[0] for launch in outcome.launches]
    assert [record.status for record in records] == ["ok", "ok"]
    shared, flat = sorted((each.ranks[0].facts for each in records), key=lambda facts: facts["work"]["outputs"])
    assert shared["work"]["outputs"] == 8 and flat["work"]["outputs"] == 56
    assert shared["work"]["updates"] == flat["work"]["updates"] == 160
    assert shared["plants"]["factors"] == flat["plants"]["factors"]
    for policy in ("random", "round_robin", "greedy", "heuristic"):
        assert shared["costs"][policy] == flat["costs"][policy]
    assert shared["costs"]["heuristic"] < shared["costs"]["greedy"] < shared["costs"]["round_robin"]
