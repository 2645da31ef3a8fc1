"""Launches go on until the number of every claim is known exactly enough, or its minutes are spent; what the stored
decision says, and the cause that a claim names."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scaleproof.claims.claim_notes import cause
from scaleproof.claims.notes import NoteCode
from scaleproof.commands.sequential import sequential
from scaleproof.launch.claim_stopping import ClaimNumber, SequentialClaims, looks
from scaleproof.record.stops import Stops, decided_plan, read_stops
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import Suite, load_suite
from scaleproof.stats import bootstrap
from tests.unit.commands.made_up_machine import MadeUpMachine, made_up_value

SUITE = """\
suite: x
title: t
experiments:
  e:
    summary: s
    base: {{program: transfer, ranks: 2, sizes: [1 KiB], iterations: 2}}
    arms: {{tool: {{transport: shm}}, ours: {{transport: tcp}}, other: {{transport: grpc}}}}
    sizes:
      full: {{launches: 6, stop: {{{stop}}}, matrix: [{{arms: [tool, ours, other]}}]}}
"""
CLAIM = """\
- id: x.{name}
  kind: claim
  origin: own
  statement: the tool and ours agree
  experiment: e
  metric: transfer_bandwidth
  nbytes: 1024
  select: {{arm: tool}}
  against: {{arm: {base}}}
  unit: x
  rule: {{name: ratio, low: 0.95, high: 1.05}}
"""
STOP = "target: 0.025, budget: 60, minutes: 2"


def suite_of(folder: Path, stop: str = STOP) -> Suite:
    (folder / "x").mkdir(exist_ok=True)
    (folder / "x" / "suite.yaml").write_text(SUITE.format(stop=stop))
    (folder / "x" / "claims.yaml").write_text(
        CLAIM.format(name="ours", base="ours") + CLAIM.format(name="other", base="other")
    )
    return load_suite(folder / "x")


@pytest.fixture(autouse=True)
def _quick_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the simulation that corrects the level of so few blocks: it takes seconds for every count."""
    monkeypatch.setattr(bootstrap, "calibrated", lambda count, paired, confidence=0.95: (confidence, confidence))


class Machine(MadeUpMachine):
    """Stops claim by claim."""

    without_value = "not_runnable"

    def __init__(self, results: Path, suite: Suite, levels: dict[str, list[float]], wall_s: float = 1.0) -> None:
        super().__init__(results, suite, "full", levels, wall_s)

    def run(self, blocks: int = 99) -> Stops:
        """Go on until every claim is known, or for `blocks` blocks; the stored decisions."""
        numbers = [
            ClaimNumber(f"x.{name}", (self.ids["tool"],), (self.ids[name],), made_up_value)
            for name in ("ours", "other")
        ]
        return self.follow(SequentialClaims(self.suite, "e", "full", numbers), blocks)


def noisy(spread: float, seed: int) -> list[float]:
    return [float(value) for value in np.random.default_rng(seed).normal(1, spread, 60)]


def test_a_claim_stops_when_its_ratio_is_known_and_takes_only_its_own_cases_along(tmp_path: Path) -> None:
    machine = Machine(tmp_path, suite_of(tmp_path), {"tool": [1.0], "ours": [1.01], "other": noisy(0.04, 1)})
    stops = machine.run()
    claims = {claim.claim: claim for claim in stops.claims}
    assert (claims["x.ours"].decided, claims["x.ours"].launches) == ("reached", 6)
    assert claims["x.other"].decided == "reached" and claims["x.other"].launches > 6
    assert claims["x.other"].half_width_share is not None and claims["x.other"].half_width_share <= 0.025
    launches = {case.arm: case.launches for case in stops.cases}
    assert launches["tool"] == launches["other"] > launches["ours"] == 6
    assert len(decided_plan(tmp_path, machine.suite, "e", "full")) == sum(launches.values())


def test_the_interval_is_computed_after_a_quarter_more_blocks_each_time() -> None:
    assert sorted(looks(6, 30)) == [6, 7, 8, 10, 12, 15, 18, 22, 27, 33]


def test_the_width_alone_decides_and_not_on_which_side_the_interval_lies(tmp_path: Path) -> None:
    """A ratio of 0.4 that is not known to 2.5 % goes on, although no interval of it could agree."""
    levels = {"tool": [0.4 * value for value in noisy(0.06, 2)], "ours": [1.0], "other": [1.0]}
    [first, _] = Machine(tmp_path, suite_of(tmp_path), levels).run(blocks=1).claims
    assert first.decided == "unfinished"


def test_the_minutes_of_a_claim_end_it_and_the_sentence_says_which_interval_was_reached(tmp_path: Path) -> None:
    levels = {"tool": noisy(0.3, 3), "ours": [1.0], "other": []}
    stops = Machine(tmp_path, suite_of(tmp_path), levels, wall_s=6.0).run()
    ours, other = stops.claims
    assert (ours.decided, ours.launches, ours.minutes) == ("time spent", 10, 2.0)
    assert (other.decided, other.launches) == ("no result", 0)
    assert {case.arm: case.decided for case in stops.cases} == {
        "tool": "time spent",
        "ours": "time spent",
        "other": "no result",
    }
    sentence = stops.claim_sentence("x.ours")
    assert sentence.startswith(
        "launches went on until 2.5 % was reached or 60 launches or 2 minutes were spent: time sp"
    )
    assert sentence.endswith("% from the number after 10 blocks in 2.0 minutes")
    assert "no interval" in stops.claim_sentence("x.other") and stops.claim_sentence("x.unknown") == ""


def test_a_case_without_values_for_a_claim_is_no_part_of_it(tmp_path: Path) -> None:
    """A claim at one message size selects the cases of other sizes too; they have no value at it."""
    machine = Machine(tmp_path, suite_of(tmp_path), {"tool": noisy(0.04, 6), "ours": [1.0], "other": []})
    ids = {arm: case_id for case_id, arm in machine.arms.items()}
    number = ClaimNumber("x", (ids["tool"], ids["other"]), (ids["ours"],), made_up_value)
    for case_id in machine.arms:
        for index in range(6):
            machine.launch(case_id, index)
    rule = SequentialClaims(machine.suite, "e", "full", [number])
    assert {launch.case.arm for launch in rule.more(machine)} == {"tool", "ours"}  # type: ignore[arg-type]
    stops = read_stops(tmp_path, "x", "e", "full")
    assert stops is not None and stops.claims[0].launches == 6


def test_a_run_that_was_killed_decides_the_same_and_repeats_nothing(tmp_path: Path) -> None:
    levels = {"tool": noisy(0.05, 4), "ours": noisy(0.05, 5), "other": [1.0]}
    machine = Machine(tmp_path, suite_of(tmp_path), levels)
    assert machine.run(blocks=2).claims[0].decided == "unfinished"
    assert machine.run() == Machine(tmp_path / "whole", machine.suite, levels).run()


def test_the_claims_of_an_experiment_bring_their_metrics_and_sides(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    rule = sequential(suite, "e", "full")
    arms = {case.case_id: case.arm for case in suite.experiment("e").size("full").cases}
    assert isinstance(rule, SequentialClaims)
    assert {number.claim: [arms[case] for case in number.cases] for number in rule.numbers} == {
        "x.ours": ["tool", "ours"],
        "x.other": ["tool", "other"],
    }


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        ("target: 0.1, budget: 9, nbytes: 8", "claims bring their own message sizes"),
        ("metric: transfer_latency, nbytes: 8, budget: 9, minutes: 3", "counts the launches of a claim"),
        ("budget: 9, minutes: 0", "minutes"),
    ],
)
def test_a_wrong_stop_is_one_line_with_its_place(stop: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="suite.yaml:9: ") as mistake:
        suite_of(tmp_path, stop)
    assert message in str(mistake.value) and "\n" not in str(mistake.value)


def test_the_cause_that_was_found_is_told_with_a_claim_that_does_not_hold_only() -> None:
    def notes(text: str | None, holds: bool) -> list[Any]:
        served = SimpleNamespace(claim=SimpleNamespace(form=SimpleNamespace(cause=text)))
        return cause(served, SimpleNamespace(holds=holds))  # type: ignore[arg-type]

    [note] = notes("a copy more", False)
    assert (note.code, note.values) == (NoteCode.CAUSE, {"words": "a copy more"})
    assert not notes("a copy more", True) and not notes(None, False)
