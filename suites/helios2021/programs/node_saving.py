"""Switches the nodes of a cluster off and on after a forecast, beside leaving all of them on."""

from __future__ import annotations

from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

import numpy as np
from suite_programs import forest
from suite_programs.forecasts import NEEDS_LIGHTGBM, forecasts
from suite_programs.node_series import STEPS_OF_DAY, generated
from suite_programs.options import models_of
from suite_programs.saving_rule import FIRST_STEPS, switched, thresholds_of
from suite_programs.sources import missing
from suite_programs.used_series import NodeUse, used_in_trace

from scaleproof.rank_programs.effects import Compute, Effect
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.spec.case import AnyCase
from scaleproof.spec.errors import SpecError

TEST_DAYS, LAST_DAY = 21, "2020-09-21"
"""Of a generated series, as that of Helios in the paper."""
LEAST_DAYS = 7
"""Before the test, to learn from."""


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
    """Options: `trace` (generated, helios, philly), `cluster`, whose thresholds hold, `forecast`; of a generated series
    `total` nodes, `days`, of which the last 21 are the test, and `shape` (varied; controls: constant, full,
    equal_days). Of LightGBM `leaves` and `rate`, of forecast linear `penalty`: see Models."""

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        for _ in self.steps():
            found = yield Compute(0.0, self._saved, "saving")
            for name, value in found.items():
                self._clock.note(name, value)

    def _saved(self) -> dict[str, float]:
        of = self.case.options
        self._series = self._nodes()
        used, total, test = self._series.used, self._series.total, self._series.test * STEPS_OF_DAY
        if len(used) < test + LEAST_DAYS * STEPS_OF_DAY:
            raise SpecError(
                f"the series has {len(used) / STEPS_OF_DAY:g} days: {LEAST_DAYS} are needed before the test of "
                f"{self._series.test}"
            )
        rule = thresholds_of(str(of["cluster"]))
        ahead, holidays = 2 * rule.future, of["trace"] != "philly"
        kind, train = str(of["forecast"]), len(used) - test
        models = models_of(of)
        made = forecasts(used, train, ahead, self._clock.seed, kind, self._series.first, holidays, models)[-test:]
        naive = forecasts(used, 0, ahead, 0, "yesterday")[-test:]
        tested = used[-test:]
        self._course = switched(tested, made, total, rule)
        return self._found(tested, errors(tested, made), errors(tested, naive))

    def _found(self, tested: np.ndarray, wrong: dict[str, float], naively: dict[str, float]) -> dict[str, float]:
        total, course = self._series.total, self._course
        before, after = 100 * float(tested.mean()) / total, 100 * float((tested / course.active).mean())
        gain = naively["forecast_rmse"] / wrong["forecast_rmse"] if wrong["forecast_rmse"] else 1.0
        return wrong | {
            "utilisation_before": before,
            "utilisation_with_ces": after,
            "utilisation_gain": after - before,
            "nodes_off": float(total - course.active.mean()),
            "running_nodes": float(tested.mean()),
            "active_nodes": float(course.active.mean()),
            "spare_nodes": float((course.active - tested).mean()),
            "total_nodes": float(total),
            "wakes_per_day": course.wakes / self._series.test,
            "nodes_per_wake": course.nodes_of_wake,
            "forecast_gain": gain,
            "short_steps": float(course.short),
        }

    def _nodes(self) -> NodeUse:
        of = self.case.options
        if of["trace"] != "generated":
            return used_in_trace(str(of["trace"]), str(of["cluster"]))
        total, days = int(of["total"]), int(of["days"])
        first = np.datetime64(LAST_DAY, "s") - np.timedelta64(days - 1, "D")
        used = generated(total, days, self._clock.seed, str(of.get("shape", "varied")))
        return NodeUse(used, total, first, TEST_DAYS)

    def checks(self) -> list[tuple[str, bool, str]]:
        """See RankProgram."""
        short, above = self._course.short, self._series.above
        return [
            ("enough_nodes", short == 0, f"{short} steps with fewer nodes than used, the first {FIRST_STEPS} included"),
            ("series", True, f"{above} of {len(self._series.used)} steps had more used nodes than all, and have all"),
        ]


PROGRAM = NodeSaving
