"""Compares the first block of an experiment with the later ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.settling import Settling, settling, timed_regions
from scaleproof.report import settling as page
from scaleproof.report.build import build
from tests.unit.claims.claims_samples import TRAIN, record, samples
from tests.unit.report.report_results import example

CASES, BLOCKS = 12, 6


def found_in(seed: int, first: float = 0.0, drift: float = 0.0) -> Settling:
    """Timed regions of launches that spread by 3 %, in blocks that differ by `drift`; block 0 takes `first` longer."""
    generator = np.random.default_rng(seed)
    blocks = generator.normal(1, drift, BLOCKS) + np.eye(BLOCKS)[0] * first
    times = blocks * generator.normal(1, 0.03, (CASES, BLOCKS))
    result = settling({str(case): dict(enumerate(row)) for case, row in enumerate(times)})
    assert result is not None
    return result


@pytest.mark.parametrize("first", [0.15, -0.15])
def test_a_first_block_that_is_another_machines_is_found(first: float) -> None:
    results = [found_in(seed, first) for seed in range(50)]
    assert not any(result.settled for result in results)
    assert all(result.shift == pytest.approx(first, abs=0.05) for result in results)


@pytest.mark.parametrize(("drift", "most"), [(0.0, 0.05), (0.03, 0.12)])
def test_a_block_like_the_others_is_rarely_accused_even_when_the_machine_drifts(drift: float, most: float) -> None:
    accused = [not found_in(seed, drift=drift).settled for seed in range(400)]
    assert np.mean(accused) <= most


def test_too_few_cases_or_blocks_give_no_result() -> None:
    def times(cases: int, blocks: int) -> dict[str, dict[int, float]]:
        return {str(case): {block: 2.0 if block == 0 else 1.0 for block in range(blocks)} for case in range(cases)}

    assert settling(times(5, 6)) is None and settling(times(6, 5)) is None and settling({}) is None
    enough = times(6, 6)
    assert settling(enough) is not None
    del enough["0"][3]
    assert settling(enough) is None


def test_the_timed_region_is_the_common_wall_time_by_case_and_block() -> None:
    marks = [
        (rank, name, 0, at, at) for rank, name, at in ((0, "start", 1), (1, "start", 2), (0, "end", 30), (1, "end", 41))
    ]
    completed = [Launch(record(TRAIN, block), samples(*marks)) for block in range(2)]
    without_end = Launch(record(TRAIN, 2), samples(*marks[:2]))
    assert timed_regions([*completed, without_end]) == {completed[0].record.case_id: {0: 0.04, 1: 0.04}}


@pytest.mark.parametrize(("first", "advised"), [(0.15, True), (0.0, False)])
def test_the_suites_page_says_what_to_type_when_the_machine_had_not_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: float, advised: bool
) -> None:
    monkeypatch.setattr(page, "settling", lambda _: found_in(0, first))
    results, suite = example(tmp_path)
    text = (build(results, tmp_path / "reports", "smoke", [suite]).parent / "example.html").read_text()
    assert "Had the machine settled?" in text
    assert ("scaleproof run example throughput --size smoke --again" in text) == advised


def test_each_call_of_an_interrupted_run_has_its_row_and_their_command_is_given_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page, "settling", lambda _: found_in(0, 0.15))
    records = [
        record(TRAIN, block, campaign_id="first" if block < 4 else "after a pause", started_at=f"2026-01-0{1 + block}")
        for block in range(6)
    ]
    runs = [SimpleNamespace(status="ok", record=each, samples=samples((0, "start", 0, 0, 0))) for each in records]
    experiment = records[0].case.experiment
    data: Any = SimpleNamespace(suite=SimpleNamespace(experiments=[experiment]), runs=runs, name="mine")
    result = page.settling_table(data)
    assert [row.cells[0].text for row in result.table.rows] == [f"{experiment}, call {call} of 2" for call in (1, 2)]
    assert len(result.commands) == 1
