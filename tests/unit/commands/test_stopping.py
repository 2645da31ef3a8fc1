"""Sequential stopping decides from records alone: which cases go on, together with which others, and until when. The
decision is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.cli import main
from scaleproof.commands.sequential import sequential
from scaleproof.launch.sequential_stopping import Sequential, fixed_number
from scaleproof.record.stops import decided_plan, read_stops, stops_path
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import Suite, load_suite
from tests.unit.commands.made_up_machine import MadeUpMachine, made_up_value

SUITE = """\
suite: x
title: t
experiments:
  e:
    summary: s
    base: {{program: transfer, ranks: 2, sizes: [1 KiB], iterations: 2}}
    arms: {{quiet: {{transport: shm}}, noisy: {{transport: tcp}}, base: {{transport: grpc}}}}
    sizes:
      smoke: {{launches: 6, stop: {{{stop}}}, matrix: [{{arms: [quiet, noisy, base]}}]}}
      ci: {{launches: 2, matrix: [{{arms: [quiet]}}]}}
"""
CLAIMS = """\
- id: x.faster
  kind: claim
  origin: own
  statement: both are faster than the base
  experiment: e
  metric: transfer_bandwidth
  nbytes: 1024
  select: {arm: [quiet, noisy]}
  against: {arm: base}
  unit: x
  rule: {name: at_least, value: 1}
  deviations: []
"""
STOP = "metric: transfer_latency, nbytes: 1 KiB, target: 0.05, budget: 12"


def suite_of(folder: Path, stop: str = STOP) -> Suite:
    (folder / "x").mkdir(exist_ok=True)
    (folder / "x" / "suite.yaml").write_text(SUITE.format(stop=stop))
    return load_suite(folder / "x")


class Machine(MadeUpMachine):
    """Stops case by case, companions together."""

    def __init__(
        self, results: Path, suite: Suite, levels: dict[str, list[float]], companions: dict[str, set[str]] | None = None
    ) -> None:
        super().__init__(results, suite, "smoke", levels)
        self.companions = {
            self.ids[arm]: {self.ids[other] for other in others} for arm, others in (companions or {}).items()
        }

    def run(self, blocks: int = 99) -> dict[str, Any]:
        """Go on until no case needs more launches, or for `blocks` blocks; the stored decisions by arm."""
        rule = Sequential(self.suite, "e", "smoke", made_up_value, self.companions)
        return {case.arm: case for case in self.follow(rule, blocks).cases}


QUIET, NOISY = [1.0, 1.01], [1.0, 1.5]
SETTLES = [1.0, 1.2, 1.0, 1.0, 1.0, 1.0, 1.01, 1.0, 1.0]


def test_a_quiet_case_stops_at_the_minimum_and_a_noisy_one_at_its_budget(tmp_path: Path) -> None:
    launches = Machine(tmp_path, suite_of(tmp_path), {"quiet": QUIET, "noisy": NOISY, "base": QUIET}).run()
    assert (launches["quiet"].decided, launches["quiet"].launches, launches["base"].launches) == ("reached", 6, 6)
    assert (launches["noisy"].decided, launches["noisy"].launches) == ("budget spent", 12)
    assert launches["noisy"].half_width_share > 0.05 > launches["quiet"].half_width_share


def test_an_interval_that_becomes_narrow_enough_ends_the_launches_before_the_budget(tmp_path: Path) -> None:
    launches = Machine(tmp_path, suite_of(tmp_path), {"quiet": QUIET, "noisy": SETTLES, "base": QUIET}).run()
    assert (
        launches["noisy"].decided == "reached" and launches["noisy"].launches == 9
    )  # nine launches drop one extreme at each end


def test_a_base_goes_on_with_the_case_that_is_compared_with_it(tmp_path: Path) -> None:
    machine = Machine(
        tmp_path, suite_of(tmp_path), {"quiet": QUIET, "noisy": SETTLES, "base": QUIET}, {"noisy": {"base"}}
    )
    launches = machine.run()
    assert (launches["base"].decided, launches["base"].launches, launches["quiet"].launches) == ("reached", 9, 6)
    assert [index for arm, index in machine.made if arm == "base"] == [
        index for arm, index in machine.made if arm == "noisy"
    ]


def test_arms_in_an_order_and_cases_of_a_trend_go_on_together(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    ordered = CLAIMS.replace("  against: {arm: base}\n", "  arms: [{arm: quiet}, {arm: base}]\n  direction: higher\n")
    ordered = ordered.replace("select: {arm: [quiet, noisy]}", "select: {ranks: 2}").replace(
        "{name: at_least, value: 1}", "{name: ordering}"
    )
    (tmp_path / "x" / "claims.yaml").write_text(ordered)
    arms = {case.case_id: case.arm for case in suite.experiment("e").size("smoke").cases}
    groups = sequential(suite, "e", "smoke")
    assert groups is not None
    assert {arms[case]: {arms[other] for other in others} for case, others in groups.companions.items()} == {
        "quiet": {"base"},
        "base": {"quiet"},
    }


def test_a_run_that_was_killed_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    suite, levels = suite_of(tmp_path), {"quiet": QUIET, "noisy": NOISY, "base": QUIET}
    machine = Machine(tmp_path, suite, levels)
    assert machine.run(blocks=2)["noisy"].decided == "unfinished"
    resumed = machine.run()
    assert len(machine.made) == len(set(machine.made)) == 6 + 6 + 12
    uninterrupted = Machine(tmp_path / "whole", suite, levels).run()
    assert resumed == uninterrupted


def test_a_case_without_any_result_does_not_use_up_the_budget(tmp_path: Path) -> None:
    machine = Machine(tmp_path, suite_of(tmp_path), {"quiet": QUIET, "noisy": NOISY, "base": []}, {"noisy": {"base"}})
    launches = machine.run()
    assert (
        launches["base"].decided == "no result"
        and launches["base"].repetitions == 6
        and launches["base"].half_width_share is None
    )


def test_tables_and_verdicts_see_the_launches_that_were_decided_on(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    assert len(decided_plan(tmp_path, suite, "e", "smoke")) == 3 * 6
    Machine(tmp_path, suite, {"quiet": QUIET, "noisy": NOISY, "base": QUIET}).run()
    planned = decided_plan(tmp_path, suite, "e", "smoke")
    assert (
        sorted({launch.case.arm for launch in planned if launch.plan_index == 11}) == ["noisy"]
        and len(planned) == 6 + 6 + 12
    )
    assert len({launch.order for launch in planned}) == len(planned)


def test_the_output_says_what_ended_the_launches(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    Machine(tmp_path, suite, {"quiet": QUIET, "noisy": NOISY, "base": QUIET}).run()
    stops = read_stops(tmp_path, "x", "e", "smoke")
    assert stops is not None
    sentence = stops.sentence({case.case_id for case in stops.cases})
    assert sentence == (
        "launches went on until transfer_latency was known within 5 % or 12 were made; cases: budget spent "
        "in 1, reached in 2"
    )
    assert stops.sentence(set()) == ""


def test_stops_of_another_form_are_one_line(tmp_path: Path) -> None:
    path = stops_path(tmp_path, "x", "e", "smoke")
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(SpecError, match="not of this version"):
        decided_plan(tmp_path, suite_of(tmp_path), "e", "smoke")


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        ("metric: transfer_latency, budget: 9, targt: 0.1", "targt: unknown key; did you mean 'target'?"),
        (
            "metric: transfer_latency, budget: 5",
            "5 is less than 'launches', 6: the budget counts all launches of a case",
        ),
        ("metric: transfer_latency, budget: 9, target: 2", "2 is not allowed; it must be less than 1"),
        ("metric: transfer_latency, budget: 9, nbytes: 3 KX", "nbytes"),
    ],
)
def test_a_wrong_stop_is_one_line_with_its_place(stop: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="suite.yaml:9: ") as mistake:
        suite_of(tmp_path, stop)
    assert message in str(mistake.value) and "\n" not in str(mistake.value)


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        ("metric: latency, budget: 9", "unknown metric 'latency'; did you mean"),
        ("metric: transfer_latency, budget: 9", "metric 'transfer_latency' is per message size: give 'nbytes'"),
        ("metric: step_s, nbytes: 8, budget: 9", "metric 'step_s' has no message size: leave out 'nbytes'"),
        ("metric: speedup, budget: 9", "metric 'speedup' has no value for a single launch"),
    ],
)
def test_a_metric_that_cannot_decide_is_one_line_before_the_first_launch(
    stop: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite_of(tmp_path, stop)
    assert main(["run", str(tmp_path / "x"), "--size", "smoke", "--results", str(tmp_path / "results")]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "results").exists()


def test_a_claim_names_the_base_that_goes_on_with_its_case(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    (tmp_path / "x" / "claims.yaml").write_text(CLAIMS)
    arms = {case.case_id: case.arm for case in suite.experiment("e").size("smoke").cases}
    rule = sequential(suite, "e", "smoke")
    assert rule is not None
    assert {arms[case]: {arms[other] for other in others} for case, others in rule.companions.items()} == {
        "quiet": {"base"},
        "noisy": {"base"},
    }


def test_a_size_without_stop_says_that_its_number_was_fixed(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    assert sequential(suite, "e", "ci") is None
    machine = Machine(tmp_path, suite, {"quiet": QUIET, "noisy": NOISY, "base": QUIET})
    case = suite.experiment("e").size("ci").cases[0]
    machine.arms[case.case_id] = "quiet"
    machine.launch(case.case_id, 0)
    stops = fixed_number(suite, "e", "ci", machine).cases  # type: ignore[arg-type]
    assert [(stop.decided, stop.repetitions, stop.launches, stop.half_width_share) for stop in stops] == [
        ("fixed number", 2, 1, None)
    ]
