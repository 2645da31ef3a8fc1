"""The table of a plan has a row for every planned launch, also for failed and missing ones."""

from __future__ import annotations

from pathlib import Path

from scaleproof.core.record_schema import Code
from scaleproof.record.store import Store
from scaleproof.record.table import collect
from scaleproof.spec.plan import PlannedLaunch
from tests.unit.records import case, commit, failure, record


def test_a_row_per_planned_launch(tmp_path: Path) -> None:
    commit(tmp_path, record("aa"))
    commit(tmp_path, record("bb", plan_index=1, status="failed", failure=failure()))
    plan = [PlannedLaunch(case(), index, 1, index) for index in range(3)]
    table = collect(plan, Store(tmp_path), {"rows": lambda launch, samples: float(len(samples))}).to_pandas()
    assert table["status"].tolist() == ["ok", "failed", "missing"]
    assert table["failure"].tolist()[1] == "rank_killed"
    assert table["rows"].tolist()[0] == 6 and table["rows"].isna().tolist() == [False, True, True]
    assert table["transport"].tolist() == ["shm"] * 3


def test_the_ok_record_counts_also_when_a_later_try_failed(tmp_path: Path) -> None:
    commit(tmp_path, record("aa", started_at="2026-01-01"))
    commit(tmp_path, record("bb", started_at="2026-01-02", status="failed", failure=failure()))
    assert collect([PlannedLaunch(case(), 0, 1, 0)], Store(tmp_path), {})["launch"].to_pylist() == ["aa"]


def test_records_of_an_older_code_are_not_mixed_in(tmp_path: Path) -> None:
    commit(tmp_path, record("aa", started_at="2026-01-01"))
    newer = Code(version="0", commit=None, dirty=None, digest="newer")
    commit(tmp_path, record("bb", started_at="2026-01-02", plan_index=1, code=newer))
    plan = [PlannedLaunch(case(), index, 1, index) for index in range(2)]
    assert collect(plan, Store(tmp_path), {})["launch"].to_pylist() == [None, "bb"]
