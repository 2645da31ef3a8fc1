"""The fit of jitter recovers the drawn parameters, and separates stragglers from the spread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scaleproof.calibrate.measured_jitter import spread
from scaleproof.commands.fit import jitter_line
from scaleproof.spec.errors import SpecError
from scaleproof.workloads.jitter_model import FittedJitter, Jitter, read_jitter, write_jitter


def launches(jitter: Jitter, count: int = 6, ranks: int = 8, steps: int = 200) -> list[pd.DataFrame]:
    return [pd.DataFrame([0.1 * jitter.factors(ranks, seed, step) for step in range(steps)]) for seed in range(count)]


def test_fitted_jitter_recovers_the_parameters_it_was_drawn_from():
    jitter = spread(launches(Jitter(step_sigma=0.03, rank_sigma=0.08, straggler_share=0.02, straggler_factor=3.0)))
    assert jitter is not None
    assert jitter.step_sigma == pytest.approx(0.03, rel=0.05) and jitter.rank_sigma == pytest.approx(0.08, rel=0.25)
    assert jitter.straggler_share == pytest.approx(0.02, rel=0.25) and jitter.straggler_factor == pytest.approx(
        3.0, rel=0.05
    )
    assert jitter.beyond == pytest.approx(0.05, abs=0.01)


def test_one_rank_gives_no_rank_spread_and_few_steps_give_no_jitter():
    jitter = spread(launches(Jitter(step_sigma=0.03), ranks=1))
    assert jitter is not None and jitter.rank_sigma is None and jitter.straggler_share == 0.0
    assert spread(launches(Jitter(0.03), steps=4)) is None and spread([]) is None


def test_even_steps_have_no_spread():
    jitter = spread([pd.DataFrame(np.full((20, 2), 0.1))])
    assert jitter is not None and (jitter.step_sigma, jitter.rank_sigma, jitter.straggler_share) == (0.0, 0.0, 0.0)


def test_jitter_is_stored_per_machine_and_another_schema_is_an_error(tmp_path: Path):
    fitted = FittedJitter(
        machine="m",
        code="c",
        fitted_at="now",
        suite="s",
        experiment="e",
        size="smoke",
        steps=9,
        step_sigma=0.1,
        rank_sigma=None,
        straggler_share=0.0,
        straggler_factor=1.0,
        beyond=0.05,
        runs=("a",),
    )
    assert read_jitter(tmp_path, "m") is None
    path = write_jitter(tmp_path, fitted)
    assert read_jitter(tmp_path, "m") == fitted and fitted.jitter == Jitter(0.1)
    assert "10.00% from step to step, no launch of two ranks, no stragglers" in jitter_line(fitted)
    path.write_text("{}")
    with pytest.raises(SpecError, match="jitter.json: no jitter of this version; "):
        read_jitter(tmp_path, "m")
