"""The program of tensoropt2022: arrays get from layout to layout, and every strategy trains as one process does."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.frontiers.layout import Layout, missing_share
from scaleproof.programs.own import load_entry
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import case_from

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "tensoropt2022" / "programs"
LAYOUTS = [
    Layout(),
    Layout(4),
    Layout(2, 2),
    Layout(1, 4),
    Layout(2, 1),
    Layout(1, 2, 2),
    Layout(1, 2),
    Layout(2, 2, 1),
]


def moves() -> Any:
    load_entry(PROGRAMS, "divided_training")
    return importlib.import_module("suite_programs.moves")


@pytest.mark.parametrize("have", LAYOUTS, ids=str)
@pytest.mark.parametrize("want", LAYOUTS, ids=str)
def test_each_rank_is_sent_what_it_lacks_and_no_more(have: Layout, want: Layout) -> None:
    module = moves()
    ranks, samples, features = 4, 8, 12
    lacking = [0] * ranks
    for piece in module.pieces(have, want, ranks, samples, features):
        high, wide = piece.cell.shape
        lacking[piece.target] += high * wide
        assert module.region(have, piece.source, ranks, samples, features).has(piece.cell)
        assert piece.source != piece.target
    assert max(lacking) == pytest.approx(missing_share(have, want, ranks) * samples * features)


@pytest.mark.parametrize(("have", "want"), [(Layout(1, 1, 4), Layout()), (Layout(), Layout(1, 4))], ids=str)
def test_a_move_that_sends_nothing_takes_no_memory(have: Layout, want: Layout) -> None:
    module, value = moves(), np.arange(32, dtype=np.float32).reshape(4, 8)
    move = module.moved(1, 4, value, have, want, 4, 8, 0)
    with pytest.raises(StopIteration) as ended:
        next(move)
    part = ended.value.value
    assert np.shares_memory(part, value)
    assert (part == value[module.region(have, 1, 4, 4, 8).inside(module.region(want, 1, 4, 4, 8))]).all()


def trained(ways: str, **options: Any) -> dict[str, list[float]]:
    given = {
        "features": "16-24-32-8",
        "batch": 8,
        "ways": ways,
        "flops": 1e9,
        "rate": 0.1,
        "alone": 1,
        "cap_mib": 0,
        **options,
    }
    case = case_from(
        {
            "program": "own",
            "entry": "divided_training",
            "suite": "tensoropt2022",
            "experiment": "e",
            "arm": "a",
            "transport": "tcp",
            "collective": "ring",
            "ranks": 4,
            "iterations": 4,
            "warmup": 0,
            "fabric": {"name": "simulated", "link_mbit": 100, "costs": "stated"},
            "options": given,
        }
    )
    launch = PlannedLaunch(case, 0, 1, 0, programs=str(PROGRAMS))
    samples = Predictor(Path("nowhere")).predict(launch).samples.to_pandas()
    return {event: rows.value.tolist() for event, rows in samples.groupby("event", observed=True)}


@pytest.mark.parametrize(
    "ways",
    [
        "4x1x1-4x1x1-4x1x1",
        "1x4x1-1x4x1-1x4x1",
        "1x1x4-1x1x4-1x1x4",
        "2x2x1-1x2x2-4x1x1",
        "1x2x2-2x1x2-1x4x1",
        "4x1x1-1x1x4-2x2x1",
    ],
)
def test_every_strategy_has_the_losses_of_one_process(ways: str) -> None:
    found = trained(ways)
    assert found["loss_difference"][0] < 1e-5
    assert found["loss"][3] < found["loss"][0]


def test_ways_are_as_many_as_layers() -> None:
    with pytest.raises(Exception, match="2 ways for 3 layers: give one for each"):
        trained("4x1x1-4x1x1")


def test_losses_of_half_the_rate_differ() -> None:
    assert trained("2x2x1-1x2x2-4x1x1", alone=2)["loss_difference"][0] > 1e-4


def test_a_part_of_the_data_is_that_of_the_whole() -> None:
    load_entry(PROGRAMS, "divided_training")
    layer = importlib.import_module("suite_programs.divided_layer")
    task, region = layer.Task((24, 8), 200, 1), moves().Region
    whole = task.inputs(3, task.whole(24))
    assert whole.shape == (200, 24) and abs(whole.mean()) < 0.1
    part = task.inputs(3, region((50, 150), (6, 12)))
    assert (part == whole[50:150, 6:12]).all()
    assert (task.inputs(4, task.whole(24)) != whole).any()


def in_process(code: str) -> str:
    """Standard output of a process of its own: peaks and caps are those of a whole process."""
    start = f"import sys\nsys.path.insert(0, {str(PROGRAMS)!r})\nimport numpy as np\nfrom process_memory import *\n"
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def test_the_peak_is_what_was_taken_since_and_what_was_held_before() -> None:
    code = """
with capped(0): held = np.full(5 * MIB, 1, np.float64)
peak = Peak(held.nbytes)
for _ in range(3):
    more = np.full(2 * MIB, 1, np.float64)
    del more
print(peak.mib())
"""
    assert float(in_process(code)) == pytest.approx(40 + 16, abs=3), "each array goes back before the next is made"


def test_what_does_not_fit_under_a_cap_is_told_and_the_cap_is_lifted() -> None:
    code = """
with capped(64) as room: arrays = [np.full(MIB, 1, np.float64) for _ in range(20)]
print(room.fits, np.full(20 * MIB, 1, np.float64).nbytes // MIB)
with capped(64) as room: arrays = [np.full(MIB, 1, np.float64) for _ in range(4)]
print(room.fits)
"""
    assert in_process(code).split() == ["False", "160", "True"]


def test_memory_that_an_earlier_thread_reserved_is_no_room_under_a_cap() -> None:
    code = """
import threading
threads = [threading.Thread(target=lambda: (np.zeros(9000), ready.wait())) for _ in range(4)]
ready = threading.Barrier(5)
for each in threads: each.start()
ready.wait()
with capped(64) as room: arrays = [np.full(MIB, 1, np.float64) for _ in range(9)]
print(room.fits)
"""
    assert in_process(code) == "False"


def search(method: str) -> dict[str, list[float]]:
    case = case_from(
        {
            "program": "own",
            "entry": "frontier_search",
            "suite": "tensoropt2022",
            "experiment": "e",
            "arm": "a",
            "transport": "tcp",
            "ranks": 1,
            "iterations": 2,
            "warmup": 0,
            "fabric": {"name": "simulated", "link_mbit": 100, "costs": "stated"},
            "options": {"method": method, "operators": 4, "configurations": 5, "seed": 1},
        }
    )
    launch = PlannedLaunch(case, 0, 1, 0, programs=str(PROGRAMS))
    samples = Predictor(Path("nowhere")).predict(launch).samples.to_pandas()
    return {event: rows.value.tolist() for event, rows in samples.groupby("event", observed=True)}


def test_both_methods_find_as_many_points_and_another_is_refused() -> None:
    assert search("dynamic")["points"] == search("elimination")["points"]
    with pytest.raises(Exception, match="options.method: unknown value 'fast'"):
        search("fast")
