"""Programs of a suite's own that draw their data from the launch's seed, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.arm_values import is_predicted
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, events
from scaleproof.launch.preflight.case_preflight import obstacle
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.case import OwnCase
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import case_from

PROGRAM = """
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.rank_programs.effects import Compute

class Draw(RankProgram):
    def main(self):
        for _ in self.steps():
            yield Compute(0.0)
            self._clock.note("seed", float(self._clock.seed))

PROGRAM = Draw

def obstacle(case):
    return ("no file", "get it") if case.value("options.file") == "absent" else None
"""


def own(**options: Any) -> OwnCase:
    case = case_from(
        {
            "program": "own",
            "entry": "draw",
            "suite": "any",
            "experiment": "any",
            "arm": "a",
            "transport": "tcp",
            "fabric": {"name": "simulated", "costs": "stated"},
            "ranks": 1,
            "iterations": 1,
            "warmup": 0,
            "options": options,
        }
    )
    assert isinstance(case, OwnCase)
    return case


@pytest.fixture
def programs(tmp_path: Path) -> str:
    (tmp_path / "draw.py").write_text(PROGRAM)
    return str(tmp_path)


@pytest.mark.parametrize("seed", [5, 6])
def test_a_program_reads_the_seed_of_its_launch(programs: str, tmp_path: Path, seed: int) -> None:
    made = Predictor(tmp_path).predict(PlannedLaunch(own(drawn=1), 0, seed, 0, programs, 0))
    rows = made.samples.to_pandas()
    assert rows[rows["event"] == "seed"]["value"].tolist() == [seed]


@pytest.mark.parametrize(("options", "predicted"), [({}, True), ({"drawn": 0}, True), ({"drawn": 1}, False)])
def test_launches_whose_data_are_drawn_are_a_sample(options: dict[str, int], predicted: bool) -> None:
    made = events(Event("seed", value=1.0))
    values = [(Launch(made.record(own(**options), plan), made.samples(1)), 1.0) for plan in range(2)]
    assert is_predicted(values) is predicted


def test_a_simulated_program_says_what_it_lacks(programs: str) -> None:
    found = obstacle(own(file="absent"), programs)
    assert found is not None and (found.reason, found.advice) == ("no file", "get it")
    assert obstacle(own(file="here"), programs) is None


def test_an_option_of_a_program_is_a_value_of_its_case() -> None:
    case = own(policy="fifo")
    assert case.value("options.policy") == "fifo" and case.value("options.other", 3) == 3
