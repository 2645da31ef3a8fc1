"""How stale gradients are, as a section of a page: the whole distribution."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest

from scaleproof.claims.metrics import PER_LAUNCH
from scaleproof.report.data import Run
from scaleproof.report.figures.staleness import shares
from scaleproof.report.staleness import staleness_sections
from tests.unit.claims.claims_samples import OF_SERVERS, record, samples
from tests.unit.report.shelf import Shelf

SHELF = Shelf()


def run_of(arm: str, stale: list[float], number: int = 0) -> Run:
    launch = record({**OF_SERVERS, "arm": arm}, number)
    rows: list[tuple[Any, ...]] = [(0, "step", step, 100 * step, 100 * step + 100) for step in range(len(stale))]
    rows += [(0, "staleness", step, 100 * step, 100 * step, 0, value) for step, value in enumerate(stale)]
    frame = samples(*rows)
    SHELF.frames[launch.launch] = frame
    metrics = {name: metric(launch, frame) for name, metric in PER_LAUNCH.items() if name.startswith("staleness")}
    return Run({"arm": arm, "status": "ok", "launch": launch.launch} | metrics, launch, SHELF)  # type: ignore[arg-type]


def test_shares_are_of_values_at_most_so_large() -> None:
    found, below = shares(np.array([3.0, 0.0, 1.0, 1.0]))
    assert found.tolist() == [0, 1, 3] and below.tolist() == pytest.approx([0.25, 0.75, 1.0])


def test_gradients_of_all_launches_of_an_arm_are_one_line() -> None:
    runs = [run_of("asp", [1, 1], 0), run_of("asp", [3, 5], 1), run_of("ssp", [0, 2], 2)]
    (part,) = staleness_sections(runs)
    rows = list(csv.DictReader(io.StringIO(part.csv)))
    of = {
        arm: [(row["staleness"], row["share_at_most"]) for row in rows if row["arm"] == arm] for arm in ("asp", "ssp")
    }
    assert of["asp"] == [("1.0", "0.5"), ("3.0", "0.75"), ("5.0", "1.0")]
    assert of["ssp"] == [("0.0", "0.5"), ("2.0", "1.0")]
    picture = str(part.panels[0].picture)
    assert "asp: half of the gradients at most 1" in picture and "95 % at most 5" in picture


def test_where_no_gradient_is_stale_there_is_no_section() -> None:
    assert staleness_sections([run_of("bsp", [0, 0])]) == [] and staleness_sections([]) == []
