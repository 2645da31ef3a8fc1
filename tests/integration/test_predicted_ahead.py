"""Trainings in virtual time are predicted two at a time, and their records are those of one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.launch.progress import Silent
from scaleproof.launch.start import predicted_ahead
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.plan import PlannedLaunch
from tests.integration.launches import launches, small_case
from tests.short_form import train_case

TRAINING: dict[str, Any] = {
    "strategy": "gossip",
    "transport": "tcp",
    "fabric": "simulated",
    "link_mbit": 1000,
    "workload": "dnn_digits",
    "data": "digits",
    "ranks": 2,
    "minibatch": 16,
    "steps": 3,
    "warmup": 0,
    "compute": {"name": "real", "profile": "xeon_e5_2698v3_x2", "efficiency": 0.5},
}


def workers() -> list[psutil.Process]:
    living = (child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE)
    return [child for child in living if predicted_ahead.WORKER in child.cmdline()]


class Watched(Silent):
    """Counts the other processes at the end of each launch, with their threads, and may end them at the first."""

    def __init__(self, end_them: bool = False) -> None:
        super().__init__()
        self.alive: list[int] = []
        self.threads: set[str] = set()
        self._end_them = end_them

    def ended(self, record: Record) -> None:
        self.alive.append(len(workers()))
        self.threads |= {worker.environ()["OPENBLAS_NUM_THREADS"] for worker in workers()}
        for worker in workers() if self._end_them else ():
            worker.kill()
            worker.wait()


def run(results: Path, plan: list[PlannedLaunch], watched: Watched) -> list[Record]:
    """The records in the order in which they were written."""
    outcome = run_plan(plan, results, size="ci", deadline_s=60.0, progress=watched, simulator=Predictor(results))
    return [Store(results).load(launch)[0] for launch in outcome.launches]


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicted_ahead, "usable_cores", lambda: 2)
    for name in predicted_ahead.THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("end_them", [False, True])
def test_records_are_those_of_one_after_the_other(tmp_path: Path, end_them: bool) -> None:
    plan = launches([train_case(**TRAINING), train_case(**{**TRAINING, "steps": 4})], repetitions=4)
    watched, alone = Watched(end_them), Predictor(tmp_path)
    records = run(tmp_path, plan, watched)
    assert [(record.case_id, record.plan_index, record.status) for record in records] == [
        (launch.case.case_id, launch.plan_index, "ok") for launch in plan
    ]
    for record, launch in zip(records, plan, strict=True):
        samples = Store(tmp_path).samples(record).to_pandas()
        assert samples.equals(alone.predict(launch).samples.to_pandas())
    assert watched.alive[0] == predicted_ahead.PROCESSES and workers() == []
    assert watched.threads == {"1"}


@pytest.mark.usefixtures("two_cores")
def test_nothing_is_predicted_beside_a_launch_that_may_be_timed(tmp_path: Path) -> None:
    case = train_case(**TRAINING)
    begun: list[list[int]] = []
    ahead = predicted_ahead.PredictedAhead.begin

    def begin(self: predicted_ahead.PredictedAhead, next_ones: list[PlannedLaunch], expected: int) -> None:
        begun.append([launch.order for launch in next_ones])
        ahead(self, next_ones, expected)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predicted_ahead.PredictedAhead, "begin", begin)
        plan = launches([case, case, small_case(), case, case, case, case, case, case])
        run(tmp_path, plan, Watched())
    assert begun[0] == [0, 1] and begun[1][:2] == [3, 4]


@pytest.mark.usefixtures("two_cores")
def test_few_launches_start_no_process(tmp_path: Path) -> None:
    watched = Watched()
    run(tmp_path, launches([train_case(**TRAINING)], repetitions=3), watched)
    assert watched.alive == [0, 0, 0]
