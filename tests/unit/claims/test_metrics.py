"""Metrics on hand-made samples whose answers are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import METRICS, PER_LAUNCH, by_size
from scaleproof.claims.metrics_pairs import max_loss_difference, max_parameter_difference, same_convergence
from scaleproof.claims.metrics_sizes import bytes_per_rank_ratio
from scaleproof.claims.metrics_split import step_split
from scaleproof.claims.suite_metrics import suite_metrics, suite_metrics_version
from scaleproof.core.record_schema import Check
from scaleproof.spec.errors import SpecError
from tests.unit.claims.claims_samples import COLLECTIVE, TRAIN, arithmetic, record, samples, step


def two_ranks(communication: tuple[float, float] | None) -> pd.DataFrame:
    """Two timed steps on two ranks, the second of which starts and ends 10 ms later, and one step of warm-up."""
    rows: list[Any] = [(0, "step", -1, -500, -100, 0, float("nan"), True)]
    for rank in range(2):
        late = 10 * rank
        rows += [
            (rank, "start", 0, late, late),
            *step(rank, 0, late, communication),
            *step(rank, 1, late + 100, communication),
            (rank, "end", 1, late + 200, late + 200),
        ]
    return samples(*rows)


def test_throughput_is_all_samples_over_the_common_wall_time() -> None:
    assert PER_LAUNCH["throughput"](record(TRAIN), two_ranks((50, 85))) == pytest.approx(16 / 0.210)


def test_throughput_needs_the_end_of_every_rank() -> None:
    rows = two_ranks(None)
    assert PER_LAUNCH["throughput"](record(TRAIN), rows[~((rows["rank"] == 1) & (rows["event"] == "end"))]) is None


def test_a_program_takes_from_its_first_step_to_its_last_whatever_rank_they_are_of() -> None:
    own = record({"suite": "t", "experiment": "t", "arm": "t", "program": "own", "entry": "t", "ranks": 2})
    rows = samples(
        (0, "step", 0, -500, -100, 0, float("nan"), True),
        (0, "step", 1, 100, 250),
        (1, "step", 0, 130, 200),
        (1, "step", 1, 200, 290),
        (1, "end", 1, 400, 400),
    )
    assert PER_LAUNCH["program_s"](own, rows) == pytest.approx(0.19)
    assert PER_LAUNCH["program_s"](record(TRAIN), rows) is None
    assert PER_LAUNCH["program_s"](own, rows[rows["event"] == "end"]) is None


def test_the_parts_of_a_step_add_up_to_it() -> None:
    split = step_split(record(TRAIN), two_ranks((50, 85)))
    assert split is not None
    assert sum(split.values()) == pytest.approx(0.1)
    # Rank 0 communicates alone from 70 to 85 ms. Rank 1 starts its exchange 10 ms later; on rank 0 that part is hidden
    # behind the backward pass.
    expected = {
        "input": 0.005,
        "forward": 0.025,
        "backward": 0.04,
        "update": 0.01,
        "exposed_transfer": 0.015,
        "imbalance": 0,
        "other": 0.005,
    }
    assert split == pytest.approx(expected)


def test_communication_behind_the_backward_pass_is_not_exposed() -> None:
    assert PER_LAUNCH["exposed_communication_s"](record(TRAIN), two_ranks((35, 70))) == 0
    assert PER_LAUNCH["exposed_communication_s"](record(TRAIN), two_ranks(None)) == 0


def test_buckets_under_way_together_are_exposed_once() -> None:
    rows = pd.concat([two_ranks((65, 85)), samples((0, "communication", 0, 70, 85), (1, "communication", 0, 80, 95))])
    assert PER_LAUNCH["exposed_communication_s"](record(TRAIN), rows) == pytest.approx(0.015)


def test_step_time_is_the_slowest_ranks() -> None:
    rows = samples(
        (0, "step", 0, 0, 100),
        (1, "step", 0, 0, 130),
        (0, "step", 1, 130, 230),
        (1, "step", 1, 130, 250),
        (0, "step", 2, 250, 350),
        (1, "step", 2, 250, 340),
    )
    assert PER_LAUNCH["step_s"](record(TRAIN), rows) == pytest.approx(0.12)


def test_metrics_of_another_program_are_none() -> None:
    empty = samples().astype({"event": "object"})
    assert all(metric(record(COLLECTIVE), empty) is None for metric in PER_LAUNCH.values())


def test_all_reduce_bandwidths_are_those_of_nccl_tests() -> None:
    rows = [(rank, "all_reduce", call, 0, 2 if rank == 3 else 1, 4000) for rank in range(4) for call in range(2)]
    table = by_size(record(COLLECTIVE), samples(*rows))
    assert list(table["time_s"]) == [0.002]
    assert table["algbw_gbs"].iloc[0] == pytest.approx(4000 / 0.002 / 1e9)
    assert table["busbw_gbs"].iloc[0] == pytest.approx(4000 / 0.002 / 1e9 * 1.5)


def test_a_transfer_is_half_a_round_trip_per_size() -> None:
    case = {"program": "transfer", "suite": "s", "experiment": "e", "arm": "a", "transport": "tcp", "sizes": [10, 1000]}
    table = by_size(record(case), samples((0, "transfer", 0, 0, 4, 10), (0, "transfer", 0, 4, 14, 1000)))
    assert list(table["time_s"]) == [0.002, 0.005]
    assert METRICS["transfer_bandwidth"].size is not None
    assert METRICS["transfer_bandwidth"].size(
        record(case), samples((0, "transfer", 0, 4, 14, 1000)), 1000
    ) == pytest.approx(0.0002)


@pytest.mark.parametrize(("sent", "expected"), [(24_000, 1.0), (32_000, 4 / 3)])
def test_bytes_are_counted_over_timed_and_verified_calls(sent: int, expected: float) -> None:
    checks = [
        Check(rank=rank, name=f"all_reduce.4000.{salt}", passed=True, detail="") for rank in range(4) for salt in (1, 2)
    ]
    rows = [(rank, "all_reduce", call, 0, 1, 4000) for rank in range(4) for call in range(2)]
    ratio = bytes_per_rank_ratio(
        record(COLLECTIVE, transport={"traffic": [{"nbytes": sent, "messages": 1}] * 4}, checks=checks), samples(*rows)
    )
    assert ratio == pytest.approx(expected)


def trained(loss: float, parameter: float) -> Launch:
    rows = samples(
        (0, "loss", 0, 0, 0, 0, 2.0),
        (0, "loss", 1, 0, 0, 0, loss),
        (1, "loss", 0, 0, 0, 0, 2.0),
        (1, "loss", 1, 0, 0, 0, loss),
    )
    return Launch(record(TRAIN), rows, lambda: np.array([parameter, -4.0], dtype=np.float32))


def test_differences_are_relative_to_the_largest_value_of_the_base() -> None:
    assert max_loss_difference(trained(1.5, 1), trained(1.0, 1)) == pytest.approx(0.25)
    assert max_parameter_difference(trained(1.0, 3), trained(1.0, 1)) == pytest.approx(0.5)


def test_trainings_are_the_same_within_rounding_only() -> None:
    assert same_convergence(trained(1.00001, 1), trained(1.0, 1)) == 1
    assert same_convergence(trained(1.0001, 1), trained(1.0, 1)) == 0
    assert same_convergence(trained(1.0, 1.01), trained(1.0, 1)) == 0
    assert same_convergence(Launch(record(TRAIN), trained(1, 1).samples), trained(1, 1)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no list METRICS"),
        (
            "from scaleproof.claims.metrics import Metric\nMETRICS = [Metric('throughput', 'x', None)]",
            "'throughput' is already one of the harness's",
        ),
    ],
)
def test_a_suite_adds_metrics_but_replaces_none(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "models.py").write_text(text)
    with pytest.raises(SpecError, match=message):
        suite_metrics(tmp_path)


def models_package(suite: Path, **files: str) -> Path:
    """A suite whose metrics are a package models/ of these files."""
    (suite / "models").mkdir(parents=True)
    for name, text in files.items():
        (suite / "models" / f"{name}.py").write_text(text)
    return suite


ARITHMETIC = """
from scaleproof.claims.metrics import Metric

from .numbers import NUMBER

METRICS = [Metric("number", "1", None, model=lambda x, rows: NUMBER)]
"""


def test_two_suites_with_packages_of_equal_module_names_keep_their_own_metrics(tmp_path: Path) -> None:
    folders = [
        models_package(tmp_path / "one", __init__=ARITHMETIC, numbers="NUMBER = 1"),
        models_package(tmp_path / "two", __init__=ARITHMETIC, numbers="NUMBER = 2"),
        models_package(tmp_path / "other" / "one", __init__=ARITHMETIC, numbers="NUMBER = 3"),
    ]
    assert [arithmetic(suite_metrics(folder)["number"]) for folder in folders] == [1, 2, 3]


def test_an_edit_to_a_file_of_a_models_package_is_seen_by_the_next_load(tmp_path: Path) -> None:
    suite = models_package(tmp_path / "one", __init__=ARITHMETIC, numbers="NUMBER = 1")
    version = suite_metrics_version(suite)
    assert suite_metrics(suite).keys() > METRICS.keys()
    (suite / "models" / "numbers.py").write_text("NUMBER = 1000")
    assert arithmetic(suite_metrics(suite)["number"]) == 1000
    assert suite_metrics_version(suite) != version


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"__init__": ""}, r"models/__init__\.py: has no list METRICS"),
        ({"numbers": "NUMBER = 1"}, r"models: has no __init__\.py with the list METRICS$"),
        (
            {"__init__": ARITHMETIC, "numbers": "import nothing_of_this_name"},
            r"models/numbers\.py: ModuleNotFoundError: No module named 'nothing_of_this_name'$",
        ),
        ({"__init__": ARITHMETIC, "numbers": "NUMBER ="}, r"SyntaxError: invalid syntax \(numbers\.py, line 1\)$"),
    ],
)
def test_a_models_package_that_cannot_be_used_is_one_line(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        suite_metrics(models_package(tmp_path / "one", **files))


def test_a_suite_with_models_py_and_a_models_package_is_refused(tmp_path: Path) -> None:
    suite = models_package(tmp_path / "one", __init__=ARITHMETIC, numbers="NUMBER = 1")
    (suite / "models.py").write_text(ARITHMETIC)
    with pytest.raises(SpecError, match=r"has both models\.py and models/"):
        suite_metrics(suite)


def test_the_first_call_of_a_size_is_in_no_other_number() -> None:
    rows = [(rank, "all_reduce", call, 10, 11, 4000) for rank in range(4) for call in range(2)]
    first = [(rank, "first_use", -1, 0, 5 + rank, 4000, float("nan"), True) for rank in range(4)]
    table = by_size(record(COLLECTIVE), samples(*rows, *first))
    assert table["first_s"].tolist() == [0.008]
    assert table["time_s"].tolist() == [0.001]
    assert METRICS["first_call_s"].size is not None
    assert METRICS["first_call_s"].size(record(COLLECTIVE), samples(*rows), 4000) is None


def test_first_steps_and_exchanges_are_counted_above_steady_ones() -> None:
    rows: list[Any] = [(rank, "step", 0, 0, 150 + 10 * rank, 0, float("nan"), True) for rank in range(2)]
    rows += [
        (rank, "communication", 0, start, start + 30, 8, float("nan"), True) for rank in range(2) for start in (50, 80)
    ]
    for number in (1, 2):
        rows += [row for rank in range(2) for row in step(rank, number, 200 * number, (50, 60))]
        rows += [(rank, "communication", number, 200 * number + 60, 200 * number + 75) for rank in range(2)]
    assert PER_LAUNCH["first_step_s"](record(TRAIN), samples(*rows)) == pytest.approx(0.060)
    assert PER_LAUNCH["first_exchange_s"](record(TRAIN), samples(*rows)) == pytest.approx(0.020 + 0.015)
    timed_first = [row for row in rows if row[-1] is not True]
    assert PER_LAUNCH["first_step_s"](record(TRAIN), samples(*timed_first)) is None


def test_throughput_compares_ranks_on_one_clock() -> None:
    from scaleproof.core.record_schema import Clock

    clocks = [Clock(rank=0, offset_ns=0, uncertainty_ns=1), Clock(rank=1, offset_ns=-10_000_000, uncertainty_ns=1)]
    assert PER_LAUNCH["throughput"](record(TRAIN, clocks=clocks), two_ranks(None)) == pytest.approx(16 / 0.200)


def test_what_computes_nothing_has_no_throughput() -> None:
    assert PER_LAUNCH["throughput"](record({**TRAIN, "compute": "none"}), two_ranks((50, 85))) is None
