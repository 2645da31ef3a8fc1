"""Suite saros2019 at size ci: every kind of its launches runs, a missing package is said, and so is a broken file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.paths import IMPORT_ROOT
from scaleproof.record.store import Store
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite

SUITE = Path(__file__).resolve().parents[2] / "suites" / "saros2019"


def ran(experiment: str, results: Path) -> tuple[Record, dict[str, float]]:
    """The launch of an experiment, and what its rank 0 noted."""
    outcome = run_plan(plan(load_suite(SUITE), experiment, "ci"), results, size="ci", deadline_s=120)
    store = Store(results)
    record, _ = store.load(outcome.launches[0])
    samples = store.samples(record).to_pandas()
    noted = samples[(samples["rank"] == 0) & samples["value"].notna()]
    return record, dict(zip(noted["event"], noted["value"], strict=True))


@pytest.mark.parametrize("experiment", ["planted", "bots", "divided"])
def test_a_launch_ranks_items(experiment: str, tmp_path: Path) -> None:
    record, noted = ran(experiment, tmp_path / "results")
    assert (record.status, record.failure) == ("ok", None)
    assert 0 < noted["map_at_5"] < 1 and 1 <= noted["promoted_place"] <= 300
    assert ("bots_undone" in noted) == (experiment == "bots")
    assert ("sent" in noted) == (experiment == "divided")


def test_a_launch_records_the_loss_before_and_after_updates(tmp_path: Path) -> None:
    record, noted = ran("updates", tmp_path / "results")
    assert (record.status, record.failure) == ("ok", None)
    assert 0 < noted["pair_loss"] < 1


def test_without_recbole_movielens_is_not_runnable_and_a_broken_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package of the same name comes before the installed one: first without the data, then with broken ones."""
    package = tmp_path / "recbole"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))  # of this process, and that of the ranks
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{IMPORT_ROOT}")
    record, _ = ran("movielens", tmp_path / "without")
    assert record.failure is not None and record.status == "not_runnable"
    assert record.failure.advice == "type: python3 -m tools.setup extras saros2019"
    data = package / "dataset_example" / "ml-100k"
    data.mkdir(parents=True)
    (data / "ml-100k.inter").write_text("user_id:token\titem_id:token\trating:float\ttimestamp:float\n1\t2\tx\t4\n")
    record, _ = ran("movielens", tmp_path / "broken")
    assert record.failure is not None and record.status == "failed"
    assert "ml-100k.inter:2: rating:float: 'x' is not a number of 0 or more" in record.failure.message
