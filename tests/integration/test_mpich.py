"""Launches on MPICH, in the environment that has it: recorded as any other, training as one worker does, and ended when
a rank is killed."""

from __future__ import annotations

import os
from glob import glob
from pathlib import Path
from typing import Any

import pytest

from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.registry import availability
from scaleproof.stats.training_equivalence import relative_difference
from scaleproof.transports.mpich import SEGMENTS
from tests.integration._training import case_of
from tests.integration.launches import assert_nothing_left, launches, small_case, use_faulty_program
from tests.waiting import wait_until

MPICH: dict[str, Any] = {"transport": "mpich", "collective": "native", "launcher": "mpich"}
TOLERANCE = 1e-5
"""As for every other transport (test_equivalence.py)."""


@pytest.fixture(scope="module", autouse=True)
def environment() -> None:
    """No test here runs without it; `make test` makes it."""
    available = availability("transport", "mpich")
    if not available.available and os.environ.get("SCALEPROOF_CI"):
        pytest.fail(f"must run in continuous integration: {available.why}")
    if not available.available:
        pytest.skip(f"not runnable here: {available.why}: {available.advice}")


def test_a_launch_says_which_library_ran_and_by_what_path(tmp_path: Path) -> None:
    outcome = run_plan(
        launches([small_case(**MPICH), small_case(**{**MPICH, "collective": "ring"}, arm="ring")]),
        tmp_path,
        size="ci",
        deadline_s=60,
    )
    assert_nothing_left(tmp_path, outcome.launches)
    for launch in outcome.launches:
        record, _ = Store(tmp_path).load(launch)
        assert (record.status, record.failure) == ("ok", None)
        for rank_facts in record.transport["ranks"]:
            assert rank_facts["library"].startswith("MPICH 5.") and rank_facts["path"] == "shared memory"
        assert all(check.passed for check in record.checks) and record.checks
        assert all(not status.facts["sockets"]["listening"] for status in record.ranks), "no rank listens anywhere"
        assert not {"leftovers", "other_address"} & {warning.code for warning in record.warnings}


def test_workers_train_as_one_does(tmp_path: Path) -> None:
    cases = [case_of(workload="dnn_digits", steps=10), case_of(**MPICH, ranks=2, strategy="sync_overlap", steps=10)]
    same_seed = [PlannedLaunch(case, 0, 1000, order) for order, case in enumerate(cases)]
    outcome = run_plan(same_seed, tmp_path, size="ci", deadline_s=120)
    records = [Store(tmp_path).load(launch)[0] for launch in outcome.launches]
    assert [record.failure for record in records] == [None, None]
    single, double = (Store(tmp_path).samples(record).to_pandas() for record in records)
    alone, together = (
        rows[(rows["event"] == "loss") & (rows["rank"] == 0)].sort_values("step")["value"].to_numpy()
        for rows in (single, double)
    )
    assert len(alone) == 10 and relative_difference(together, alone) <= TOLERANCE


def test_a_killed_rank_ends_the_launch_and_nothing_is_left(tmp_path: Path) -> None:
    healthy, faulty, before = small_case(**MPICH), small_case("faulty", **MPICH), set(glob(f"{SEGMENTS}*"))
    with pytest.MonkeyPatch.context() as patch:
        use_faulty_program(patch, "SIGKILL", tmp_path / "faults")
        outcome = run_plan(launches([faulty, healthy]), tmp_path / "results", size="ci", deadline_s=30)
    assert_nothing_left(tmp_path / "results", outcome.launches)
    new = [Path(name) for name in set(glob(f"{SEGMENTS}*")) - before]
    # Launches of tests that run at the same time have segments too, for as long as they start.
    wait_until(lambda: not [path for path in new if path.exists()], f"{new} disappear", within_s=10)
    failures = [Store(tmp_path / "results").load(launch)[0].failure for launch in outcome.launches]
    assert [failure and failure.code for failure in failures] == ["rank_killed", None]
