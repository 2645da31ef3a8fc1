"""What a predicted training cannot exceed: where its compute is certain, and what its intervals and its page say."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaleproof.calibrate.attainable import Attainable, NoBound, attainable
from scaleproof.claims.compute_limit import limit_of, limit_of_ratio, most_throughput
from scaleproof.claims.estimate import answer
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import METRICS
from scaleproof.claims.metrics_train import throughput
from scaleproof.claims.question import Question
from scaleproof.core.record_schema import Record
from scaleproof.simulate.predict import Predictor
from tests.unit.claims.claims_samples import TRAIN, record, samples
from tests.unit.claims.test_claims_levels import timed_steps
from tests.unit.simulate.test_predict import training

CERTAIN = {"node": "n", "taken": "reckoned", "measured_at": "", "step_s": 0.08}
RATES = [99.0, 100.0, 90.0, 100.0, 98.0, 100.0]
"""A prediction and five draws; ranks alone compute 8 samples in 0.08 s."""


def predicted(number: int = 0, profile: dict[str, Any] | None = None, **facts: Any) -> Record:
    case = {**TRAIN, "fabric": "simulated", "transport": "tcp", "collective": "ring"}
    made = record(case, number, evidence="simulated")
    return made.model_copy(update={"transport": {"prediction": {"profile": profile or CERTAIN, **facts}}})


def test_ranks_that_wait_for_nothing_are_the_most() -> None:
    assert most_throughput(predicted()) == pytest.approx(100)
    assert limit_of("throughput", [predicted()]) == pytest.approx(100)
    assert limit_of("step_s", [predicted()]) is None


@pytest.mark.parametrize(
    "uncertain",
    [
        predicted(profile={**CERTAIN, "measured_at": "2026-01-01T00:00:00Z"}),
        predicted(jitter={"steps": 0.1}),
        predicted(relative_times=[1.0, 2.0]),
        record(TRAIN),
    ],
    ids=["measured", "varying", "unequal nodes", "no prediction"],
)
def test_where_compute_is_uncertain_there_is_no_limit(uncertain: Record) -> None:
    assert most_throughput(uncertain) is None
    assert limit_of("throughput", [predicted(), uncertain]) is None


def test_a_ratio_has_a_limit_where_its_base_is_certain() -> None:
    above = [(predicted(), 80.0), (predicted(1), 90.0)]
    assert limit_of_ratio("throughput", above, [(predicted(), 25.0), (predicted(1), 25.0)]) == pytest.approx(4)
    assert limit_of_ratio("throughput", above, [(predicted(), 25.0), (predicted(1), 26.0)]) is None


def test_the_interval_of_a_predicted_throughput_ends_where_computing_does() -> None:
    draws = [Launch(predicted(number), samples(*timed_steps(8000 / rate * 2))) for number, rate in enumerate(RATES)]
    pool: Any = SimpleNamespace(launches=lambda select, evidence: draws)
    measurement = answer(Question(METRICS["throughput"], {}), pool, "simulated")
    assert measurement is not None and measurement.estimate.interval is not None
    interval = measurement.estimate.interval
    assert interval.low < 90 and interval.high == pytest.approx(100) and "cut" in interval.method


def test_the_limit_stands_beside_the_value_as_its_bound() -> None:
    bound = attainable(predicted(), METRICS["throughput"], 99.0, None)
    assert isinstance(bound, Attainable) and (bound.name, bound.limit) == ("compute", pytest.approx(100))
    assert bound.share == pytest.approx(0.99) and not bound.above
    assert isinstance(attainable(predicted(jitter={"steps": 0.1}), METRICS["throughput"], 99.0, None), NoBound)


def test_a_simulated_training_never_exceeds_its_limit(tmp_path: Path) -> None:
    certain = {"compute.profile": "xeon_e5_2698v3_x2", "compute.efficiency": 0.5, "strategy": "sync"}
    alone = {"transport": None, "collective": "native", "strategy": "local_only", "ranks": 1, "nodes": 1}
    shares = []
    for fields in (alone, {"fabric.link_mbit": 1000.0}):
        case = training(**{**certain, **fields})
        launch: Any = SimpleNamespace(case=case, programs="", plan_index=0, seed=0)
        predicted = Predictor(tmp_path).predict(launch)
        facts = {"case": case, "evidence": "simulated", "transport": {"prediction": predicted.facts}}
        made = record(TRAIN).model_copy(update=facts)
        limit, rate = most_throughput(made), throughput(made, predicted.samples.to_pandas())
        assert limit is not None and rate is not None
        shares.append(rate / limit)
    assert shares[0] == pytest.approx(1, rel=1e-4) and shares[1] < 0.9
