"""What a run in virtual time leaves behind: the garbage collector is paused meanwhile, so that nothing may need it."""

from __future__ import annotations

import gc
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from scaleproof.simulate.predict import Predictor
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import train_case

BASE: dict[str, Any] = {
    "transport": "tcp",
    "workload": "linear_regression",
    "ranks": 5,
    "minibatch": 4,
    "warmup": 0,
    "fabric": {"name": "simulated", "messages": "free", "gamma_times": 0},
    "compute": {"name": "replay", "profile": "xeon_e5_2698v3_x2", "efficiency": 0.5},
    "step_delay": "fixed:1+exponential:1",
}
STRATEGIES = {
    "polls": {"strategy": {"name": "probabilistic_barrier", "sample": 2}},
    "collectives": {"strategy": "averaged_gradients", "ranks": 4},
    "messages": {"strategy": "server", "fabric": {"name": "simulated"}},
    "detached": {"strategy": "elastic_averaging", "fabric": {"name": "simulated"}},
}


def left_over(folder: Path, steps: int, fields: dict[str, Any]) -> int:
    """Functions of the engine that only the collector frees after a run, with all that they hold."""
    launch = PlannedLaunch(train_case(**{**BASE, "steps": steps, **fields}), 0, 1000, 0)
    Predictor(folder).predict(launch)  # fills caches
    for _ in range(3):  # what has a finaliser, of whatever ran before, is freed by a second one
        gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        Predictor(folder).predict(launch)
        gc.collect()
        functions = [each for each in gc.garbage if isinstance(each, FunctionType)]
        return sum(each.__module__.startswith("scaleproof.simulate") for each in functions)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("fields", STRATEGIES.values(), ids=STRATEGIES)
def test_what_a_step_has_made_is_gone_with_it(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert left_over(tmp_path, 40, fields) <= left_over(tmp_path, 10, fields) + 5
