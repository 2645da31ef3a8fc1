"""Switches the nodes of a cluster off and on after a forecast, beside leaving all of them on."""

from __future__ import annotations

from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

import numpy as np
from suite_programs import forest
from suite_programs.forecasts import NEEDS_LIGHTGBM, forecasts
from suite_programs.node_series import STEPS_OF_DAY, generated
from suite_programs.saving_rule import FIRST_STEPS, switched, thresholds_of
from suite_programs.sources import missing
from suite_programs.used_series import used_in_trace

from scaleproof.rank_programs.effects import Compute, Effect
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.spec.case import AnyCase

TEST_DAYS = 21
"""1 to 21 September in the paper."""


def obstacle(case: AnyCase) -> tuple[str, str] | None:
    """See harness/scaleproof/programs/own.py."""
    if case.value("options.forecast") in NEEDS_LIGHTGBM and find_spec("lightgbm") is None:
        return forest.MISSING
    return missing(case)


def errors(used: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Of forecasts (steps, ahead): root of the mean square in nodes, and symmetric mean of shares in %."""
    steps, ahead = predicted.shape
    whole = steps - ahead + 1
    truth = np.lib.stride_tricks.sliding_window_view(used, ahead).astype(float)
    apart = predicted[:whole] - truth
    scale = np.maximum((np.abs(predicted[:whole]) + np.abs(truth)) / 2, 1e-9)
    return {
        "forecast_rmse": float(np.sqrt((apart**2).mean())),
        "forecast_smape": 100 * float((np.abs(apart) / scale).mean()),
    }


class NodeSaving(RankProgram):
    """Options: `trace` (generated, helios, philly), `cluster`, whose thresholds hold, `total` nodes, `days` of the
    series, of which the last 21 are the test; `forecast`; `constant: 1`: a series that never changes."""

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        for _ in self.steps():
            found = yield Compute(0.0, self._saved, "saving")
            for name, value in found.items():
                self._clock.note(name, value)

    def _saved(self) -> dict[str, float]:
        of = self.case.options
        used, total = self._series()
        rule, test = thresholds_of(str(of["cluster"])), TEST_DAYS * STEPS_OF_DAY
        ahead = 2 * rule.future
        made = forecasts(used, len(used) - test, ahead, self._clock.seed, str(of["forecast"]))[-test:]
        naive = forecasts(used, 0, ahead, 0, "yesterday")[-test:]
        tested = used[-test:]
        course = switched(tested, made, total, rule)
        wrong, naively = errors(tested, made), errors(tested, naive)
        self._short = course.short
        before, after = 100 * float(tested.mean()) / total, 100 * float(tested.sum() / course.active.sum())
        gain = naively["forecast_rmse"] / wrong["forecast_rmse"] if wrong["forecast_rmse"] else 1.0
        return wrong | {
            "utilisation_before": before,
            "utilisation_with_ces": after,
            "utilisation_gain": after - before,
            "nodes_off": float(total - course.active.mean()),
            "running_nodes": float(tested.mean()),
            "active_nodes": float(course.active.mean()),
            "total_nodes": float(total),
            "wakes_per_day": course.wakes / TEST_DAYS,
            "nodes_per_wake": course.nodes_of_wake,
            "forecast_gain": gain,
        }

    def _series(self) -> tuple[np.ndarray, int]:
        of = self.case.options
        if of["trace"] != "generated":
            return used_in_trace(str(of["trace"]), str(of["cluster"]))
        total = int(of["total"])
        return generated(total, int(of["days"]), self._clock.seed, bool(of.get("constant", 0))), total

    def checks(self) -> list[tuple[str, bool, str]]:
        """See RankProgram."""
        detail = f"{self._short} steps with fewer nodes than used, the first {FIRST_STEPS} included"
        return [("enough_nodes", self._short == 0, detail)]


PROGRAM = NodeSaving
