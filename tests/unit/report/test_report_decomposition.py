"""Tables of the decomposition: losses add up, controls bound a step, the base is named, flags and texts are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.claims.metrics import PER_LAUNCH
from scaleproof.claims.stragglers import SlowestRank
from scaleproof.report import training
from scaleproof.report.control_arms import controls
from scaleproof.report.data import Run, SuiteData
from scaleproof.report.decomposition import (
    FLAG,
    base_runs,
    first_use,
    losses,
    lost_points,
    step_section,
)
from scaleproof.report.figures.style import looks
from scaleproof.report.groups import by_network
from scaleproof.report.ranks_compared import ranks_compared, straggler_text
from scaleproof.spec.suite import load_suite
from tests.unit.claims.claims_samples import TRAIN, record, samples, step
from tests.unit.report.shelf import Shelf

ALONE: dict[str, Any] = {"transport": None, "strategy": "local_only"}


SHELF = Shelf()


def run_of(
    arm: str,
    number: int = 0,
    length: float = 100,
    communication: tuple[float, float] | None = None,
    late: float = 0,
    **fields: Any,
) -> Run:
    """A launch with steps of this length in ms; rank 1's backward pass is longer by `late`."""
    case = {**TRAIN, "arm": arm, **fields}
    ranks = case["ranks"]
    rows: list[tuple[Any, ...]] = [
        (rank, "step", 0, -500, -500 + 2 * length, 0, float("nan"), True) for rank in range(ranks)
    ]
    for rank in range(ranks):
        rows += [(rank, "start", 1, 0, 0), (rank, "end", 1, length, length), *step(rank, 1, 0, communication, length)]
        if rank == 1 and late:
            rows.append((1, "backward", 1, 70, 70 + late))
    launch, frame = record(case, number), samples(*rows)
    SHELF.frames[launch.launch] = frame
    row = {"arm": arm, "status": "ok", "launch": launch.launch} | {
        name: metric(launch, frame) for name, metric in PER_LAUNCH.items()
    }
    return Run(row, launch, SHELF)  # type: ignore[arg-type]


def texts(table: Any) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in table.rows]


@given(
    st.lists(st.floats(0.1, 100), min_size=7, max_size=7),
    st.lists(st.floats(0.1, 100), min_size=7, max_size=7),
    st.floats(1.5, 64),
)
def test_losses_add_up_to_what_is_missing_of_the_efficiency(
    base: list[float], parts: list[float], times: float
) -> None:
    lost = lost_points(np.array(base), np.array(parts), times)
    assert 1 - sum(lost) == pytest.approx(sum(base) / times / sum(parts))


def test_an_update_that_every_rank_makes_in_full_is_a_loss() -> None:
    groups = by_network([run_of("alone", ranks=1, **ALONE), run_of("gloo", length=90)])
    (row,) = losses(groups).rows
    assert row.group.endswith("from alone at 1 rank")
    # 100 ms on one rank, 90 on two: efficiency 100 / 180; of the update's 10 ms 5 are lost, 5 / 90.
    assert [row.cells[index].text.replace("\u202f", " ") for index in (0, 1, 2, 8)] == ["gloo", "2", "56 %", "5.6 %"]


def test_a_step_is_shown_between_its_controls() -> None:
    runs = [
        run_of("gloo", length=100),
        run_of("alone", length=80, **ALONE),
        run_of("gloo_off", length=40, compute="none"),
    ]
    (cells,) = texts(controls(by_network(runs)))
    assert [cell.replace("\u202f", " ") for cell in cells] == [
        "gloo",
        "2",
        "100",
        "80.0",
        "40.0",
        "80.0",
        "120",
        "yes",
        "50 %",
    ]
    assert texts(controls(by_network(runs[:2]))) == [], "without both controls there is nothing to say"


def test_the_base_has_as_many_threads_a_rank_as_what_is_scaled() -> None:
    runs = [
        run_of("alone", ranks=1, **ALONE),
        run_of("one_process", length=60, ranks=1, threads_per_rank=2, **ALONE),
        run_of("gloo", length=70),
    ]
    assert [run.row["arm"] for run in base_runs(runs)] == ["alone"]
    section = training.sections(runs, looks({"alone": None, "one_process": None, "gloo": "gloo"}))[0]
    (table,) = section.tables
    assert {row.group.partition("base: ")[2] for row in table.rows} == {"alone, 1 rank x 1 thread"}
    gloo = next(row for row in table.rows if row.cells[0].text == "gloo")
    assert gloo.cells[-1].text == "0.857", "60 ms in one process of two threads, 70 on two ranks"


def test_the_first_step_stands_beside_the_steady_one() -> None:
    (cells,) = texts(first_use(by_network([run_of("gloo")])))
    assert cells == ["gloo", "2", "100", "–", "100", "1"]


def test_a_slow_rank_is_named_on_the_page() -> None:
    runs = [run_of("gloo", number, communication=(70, 90), late=15) for number in range(6)]
    (cells,) = texts(ranks_compared(by_network(runs)))
    assert cells[2] == "80.0 / 95.0"
    assert cells[4].startswith("rank 1: 19")
    assert straggler_text(SlowestRank(1, 0.2, None, 1)) == "no straggler named: fewer than 6 launches"
    assert straggler_text(SlowestRank(0, 0.001, 0.9, 6)) == "no straggler"


def test_more_than_5_percent_unexplained_is_flagged() -> None:
    def cells(communication: tuple[float, float]) -> str:
        table = step_section(by_network([run_of("gloo", communication=communication)])).tables[0]
        return " ".join(cell.text for cell in table.rows[0].cells)

    assert FLAG in cells((70, 80))
    assert FLAG not in cells((70, 89))


def test_traced_launches_are_in_no_figure() -> None:
    suite = load_suite("das2016")
    runs = [run_of("gloo"), run_of("gloo", 1, tracing="full")]
    assert [run.row["status"] for run in SuiteData(suite, [], runs).completed("train")] == ["ok"]
    assert runs[1].metric("throughput") is None
    assert runs[1].metric("step_s") is None
    assert runs[1].metric("exposed_communication_s") is None
