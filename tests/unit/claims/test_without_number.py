"""Launches that diverged, or never reached their target, count as worse than every number, and are named with their
words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scaleproof.claims.claims_file import ClaimResult, ClaimsFile
from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.judge import judge_claims
from scaleproof.claims.made_up import Event, MadeUp, events
from scaleproof.claims.made_up_store import MadeUpStore
from scaleproof.claims.noise_floor import KnownFloor
from scaleproof.claims.sentences import number
from scaleproof.report.numbers import significant
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite
from scaleproof.stats.never import NEVER, is_never

SUITE = """
suite: mine
title: t
experiments:
  e:
    summary: s
    base: {program: train, workload: {name: dnn_digits, data: digits}, minibatch: 48, steps: 4, ranks: 2,
      evaluate_every: 1, transport: tcp, fabric: {name: simulated, link_mbit: 100},
      compute: {name: real, profile: xeon_e5_2698v3_x2, efficiency: 0.5}}
    arms:
      gossip: {strategy: gossip}
      push: {strategy: {name: gossip, form: push}}
    sizes: {smoke: {launches: 6, matrix: [{arms: [gossip, push]}]}}
"""
SOONER: dict[str, Any] = {
    "id": "mine.own.sooner",
    "origin": "own",
    "statement": "gossip reaches the target sooner",
    "unit": "x",
    "direction": "lower",
    "experiment": "e",
    "metric": "time_to_quality",
    "select": {"arm": "gossip"},
    "against": {"arm": "push"},
    "rule": {"name": "ordering", "effect": 0.1},
}
TARGET = 0.95


def judged(folder: Path, claim: dict[str, Any], **launches: list[MadeUp]) -> ClaimResult:
    """The claim after one launch of each arm for each made-up one."""
    (folder / "mine").mkdir()
    (folder / "mine" / "suite.yaml").write_text(SUITE)
    (folder / "mine" / "claims.yaml").write_text(yaml.safe_dump([claim]))
    suite, store = load_suite("mine", folder), MadeUpStore()
    for launch in plan(suite, "e", "smoke"):
        store.add(launch, launches[launch.case.arm][launch.plan_index])
    (loaded,) = load_claims(suite)
    ((result,),) = judge_claims(suite, "smoke", store, [loaded], lambda *_, **__: KnownFloor())
    again = ClaimsFile.model_validate_json(ClaimsFile(claims=(result,)).model_dump_json())
    assert again.claims[0] == result, "claims.json can hold it"
    return result


def reached(*seconds: float) -> list[MadeUp]:
    return [events(Event("input"), Event("test_accuracy", at, at, ranks=(0,), value=TARGET)) for at in seconds]


def missed(count: int, best: float = 0.9) -> list[MadeUp]:
    return [events(Event("input"), Event("test_accuracy", 99.0, 99.0, ranks=(0,), value=best))] * count


def test_an_arm_that_misses_the_target_is_slower_than_one_that_reaches_it(tmp_path: Path) -> None:
    result = judged(tmp_path, SOONER, gossip=reached(10, 11, 12, 13, 14, 15), push=missed(6))
    assert result.verdict == "reproduced"
    assert "6 of 6 launches (arm push) have no number" in result.reason
    assert "not reached, best 0.9 of 0.95 (6)" in result.reason


def test_the_arm_of_the_claim_that_misses_the_target_refutes_it(tmp_path: Path) -> None:
    fast_or_never = [*reached(1, 1.1), *missed(4)]
    result = judged(tmp_path, SOONER, gossip=fast_or_never, push=reached(10, 11, 12, 13, 14, 15))
    assert result.verdict != "reproduced", "its two launches that reached the target were faster"
    assert result.ours is not None and is_never(result.ours)


def test_one_launch_that_misses_the_target_is_the_slowest(tmp_path: Path) -> None:
    claim = {**SOONER, "unit": "s", "rule": {"name": "at_most", "value": 20}}
    del claim["against"]
    result = judged(tmp_path, claim, gossip=[*reached(10, 11, 12, 13, 14), *missed(1)], push=missed(6))
    assert result.ours == 12.5 and result.n == 6
    assert result.interval is not None and is_never(result.interval.high)
    assert result.verdict == "inconclusive" and "infinity" in result.rule


def test_two_arms_that_both_miss_the_target_are_not_compared(tmp_path: Path) -> None:
    result = judged(tmp_path, SOONER, gossip=missed(6), push=missed(6))
    assert result.verdict == "inconclusive" and result.ours is None
    assert "6 of 6 launches (arm gossip) have no number" in result.reason


def test_a_claim_can_be_that_an_arm_diverges(tmp_path: Path) -> None:
    diverges = {
        **{key: value for key, value in SOONER.items() if key not in ("against", "direction")},
        "metric": "diverged",
        "unit": "bool",
        "rule": {"name": "at_least", "value": 1},
    }
    lost = [events(Event("loss", step=3, value=float("inf")))] * 6
    fine = [events(Event("loss", step=3, value=1.0))] * 6
    assert judged(tmp_path, diverges, gossip=lost, push=fine).verdict == "reproduced"
    other = tmp_path / "other"
    other.mkdir()
    assert judged(other, diverges, gossip=fine, push=lost).verdict == "not reproduced"


def test_losses_of_an_arm_that_diverges_are_worse_than_those_of_one_that_learns(tmp_path: Path) -> None:
    claim = {**SOONER, "metric": "test_loss"}
    learns = [events(Event("test_loss", ranks=(0,), value=1.0 + n / 100)) for n in range(6)]
    lost = [events(Event("loss", step=5, value=float("nan")), Event("test_loss", ranks=(0,), step=5))] * 6
    result = judged(tmp_path, claim, gossip=learns, push=lost)
    assert result.verdict == "reproduced" and "diverged at step 5 (6)" in result.reason


@pytest.mark.parametrize(("value", "shown"), [(NEVER, "∞"), (NEVER / 12, "∞"), (1 / NEVER, "0"), (12.0, "12.0")])
def test_what_stands_for_no_number_is_shown_as_none(value: float, shown: str) -> None:
    assert significant(value) == shown
    assert number(NEVER) == "infinity" and number(12.0) == "12"
