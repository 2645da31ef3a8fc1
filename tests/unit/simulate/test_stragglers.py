"""Stragglers by stated laws: their tails, what the slowest of many ranks takes, and mistakes in one line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.cli import main
from scaleproof.record.digest import machine_id
from scaleproof.simulate.predict import Predictor, inputs_of
from scaleproof.spec.case import parse_case
from scaleproof.spec.errors import SpecError
from scaleproof.spec.straggler_law import StragglerLaw, straggler_law
from scaleproof.workloads.jitter_model import (
    FittedJitter,
    HalfAsLate,
    Stragglers,
    Variation,
    slowest,
    variation,
    write_jitter,
)

HERE = Path("/nowhere")
RANKS = 16
STEPS = 4000
HARMONIC = sum(1 / number for number in range(1, RANKS + 1))


def law_of(text: str) -> Variation:
    law = variation(text, HERE, "m")
    assert law is not None
    return law


def drawn(law: str, ranks: int = 1000, steps: int = 100) -> np.ndarray:
    return np.concatenate([law_of(law).factors(ranks, 1, step) for step in range(steps)])


@pytest.mark.parametrize("x", [2.0, 4.0, 8.0])
def test_a_pareto_law_has_the_tail_that_it_states(x: float) -> None:
    factors = drawn("pareto:2")
    assert factors.min() >= 1 and float((factors > x).mean()) == pytest.approx(x**-2, rel=0.1)


def test_each_law_has_its_own_median_and_spread() -> None:
    normal = np.log(drawn("lognormal:0.3"))
    assert float(np.median(normal)) == pytest.approx(0, abs=0.01) and float(normal.std()) == pytest.approx(
        0.3, rel=0.02
    )
    assert float(drawn("exponential:0.5").mean()) == pytest.approx(1.5, rel=0.02)
    assert float((drawn("slow:8,0.01") == 8).mean()) == pytest.approx(0.01, rel=0.1)


def test_a_share_of_steps_has_the_law_and_all_others_are_usual() -> None:
    factors = drawn("pareto:3,0.1")
    assert float((factors > 1).mean()) == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        ("pareto:4", RANKS ** (1 / 4) * math.gamma(1 - 1 / 4)),
        ("exponential:0.5", 1 + 0.5 * HARMONIC),
        ("slow:8,0.05", 1 + 7 * (1 - 0.95**RANKS)),
    ],
)
def test_the_slowest_rank_takes_what_extreme_values_say(law: str, expected: float) -> None:
    assert slowest(law_of(law), RANKS, 3, STEPS) == pytest.approx(expected, rel=0.03)


def test_draws_follow_from_seed_and_step_and_halves_add_half() -> None:
    law = Stragglers("pareto", (3.0, 1.0))
    assert np.array_equal(law.factors(8, 1, 2), law.factors(8, 1, 2))
    assert not np.array_equal(law.factors(8, 1, 2), law.factors(8, 1, 3))
    assert HalfAsLate(law).factors(8, 1, 2) == pytest.approx(1 + (law.factors(8, 1, 2) - 1) / 2)


def case(**changes: Any) -> Any:
    fields = {
        "suite": "s",
        "experiment": "e",
        "arm": "a",
        "program": "train",
        "workload": "vgg_a",
        "strategy": "sync",
        "transport": "tcp",
        "collective": "ring",
        "compute": {"profile": "xeon_e5_2698v3_x2", "efficiency": 0.5},
        "ranks": 4,
        "minibatch": 64,
        "warmup": 0,
        "steps": 5,
        "fabric": {"name": "simulated", "stragglers": "slow:8,0.2"},
    }
    return parse_case(fields | changes)


def test_a_simulated_case_waits_for_its_stragglers_in_every_step() -> None:
    late, even = (
        Predictor(HERE).predict(
            type("Launch", (), {"case": chosen, "programs": "", "plan_index": 0, "seed": 0})()  # type: ignore[arg-type]
        )
        for chosen in (case(), case(fabric="simulated"))
    )
    steps = [predicted.samples.to_pandas().query("event == 'step' and rank == 0") for predicted in (late, even)]
    took = [(table.end_ns - table.start_ns).to_numpy() / 1e9 for table in steps]
    compute = late.facts["profile"]["step_s"]
    factors = [Stragglers("slow", (8.0, 0.2)).factors(4, 0, step).max() for step in range(5)]
    assert {1.0, 8.0} == set(factors), "some steps have a straggler, and some have none"
    assert took[0] - took[1] == pytest.approx([compute * (factor - 1) for factor in factors], rel=1e-6)
    assert late.facts["jitter"] == {"law": "slow", "numbers": (8.0, 0.2)}
    assert inputs_of(case(), HERE).digest != inputs_of(case(fabric="simulated"), HERE).digest


def test_fitted_stragglers_are_those_of_this_machine(tmp_path: Path) -> None:
    fields = {"suite": "s", "experiment": "e", "size": "smoke", "steps": 9, "beyond": 0.05, "runs": ()}
    fitted = FittedJitter(
        machine=machine_id(), code="c", fitted_at="", step_sigma=0.1, rank_sigma=0.2, straggler_share=0.0,
        straggler_factor=1.0, **fields,  # type: ignore[arg-type]
    )  # fmt: skip
    write_jitter(tmp_path, fitted)
    assert variation("fitted", tmp_path, machine_id()) == fitted.jitter
    with pytest.raises(SpecError, match="none was fitted on this machine; type `scaleproof fit"):
        variation("fitted", tmp_path / "other", machine_id())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paretto:3", "unknown law 'paretto'; did you mean 'pareto'"),
        ("pareto", r"write pareto:ALPHA\[,SHARE\]"),
        ("pareto:1", "ALPHA of pareto is a number above 1"),
        ("pareto:nan", "ALPHA of pareto is a number"),
        ("pareto:3,1.5", "SHARE of pareto is a number above 0 and at most 1"),
        ("slow:8", "write slow:FACTOR,SHARE"),
        ("slow:8,0.1,3", "write slow:FACTOR,SHARE"),
        ("fitted:1", "write fitted"),
    ],
)
def test_a_mistake_in_a_law_is_one_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        straggler_law(text)
    with pytest.raises(ValueError, match=message):
        case(fabric={"name": "simulated", "stragglers": text})


def test_a_law_without_its_share_counts_for_all_steps() -> None:
    assert straggler_law("pareto:3") == StragglerLaw("pareto", (3.0, 1.0)) == straggler_law("pareto:3,1")


@pytest.mark.parametrize(
    "changes",
    [{"compute": "none"}, {"fabric": {"name": "host", "stragglers": "pareto:3"}}],
)
def test_stragglers_where_nothing_is_simulated_or_computes_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="stragglers"):
        case(**changes)


def test_a_prediction_has_the_draws_of_its_stragglers_in_its_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["predict", "--workload", "vgg_a", "--fabric", "100g", "--peak", "2", "--efficiency", "0.5"]
    arguments = [*base, "--nodes", "1,16", "--json", "--results", str(tmp_path)]
    found = []
    for more in ([], ["--stragglers", "exponential:0.5"]):
        assert main([*arguments, *more]) == 0
        found.append(json.loads(capsys.readouterr().out))
    even, late = (each["points"] for each in found)
    for point, usual, ranks in zip(late, even, (1, 16), strict=True):
        expected = usual["compute_s"]["value"] * (1 + 0.5 * sum(1 / number for number in range(1, ranks + 1)))
        assert point["compute_s"]["value"] == pytest.approx(expected, rel=0.08)
        assert point["compute_s"]["low"] < expected < point["compute_s"]["high"]
        assert point["step_s"]["value"] >= point["compute_s"]["value"]
        assert point["step_s"]["high"] > 1.1 * point["step_s"]["low"], "draws differ"
    assert late[1]["efficiency"]["value"] < 0.75 < even[1]["efficiency"]["value"], "more nodes wait longer"
    assert late[1]["gains"]["stragglers"] > 0.25 and "stragglers" not in even[1]["gains"]
    assert found[1]["stragglers"] == "exponential:0.5"
    assert main([*base, "--nodes", "2", "--results", str(tmp_path), "--stragglers", "paretto:3"]) == 2
    said = capsys.readouterr().err.strip()
    assert said == "--stragglers: unknown law 'paretto'; did you mean 'pareto'?"
