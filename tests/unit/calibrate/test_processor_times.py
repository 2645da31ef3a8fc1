"""Times of cores are fitted to windows of messages, stored, and used by cases with servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.calibrate.measured_processor import has_windows, window_times
from scaleproof.claims.finished_launch import Launch
from scaleproof.cli import main
from scaleproof.record.digest import machine_id
from scaleproof.simulate.case_costs import cost_model
from scaleproof.simulate.cost_file import Parameter
from scaleproof.simulate.fitted_processor import STATED
from scaleproof.simulate.processor_file import ProcessorCost, ProcessorTimes, SideTime, read_processor, write_processor
from scaleproof.simulate.processor_fit import WindowTimes, fit_sides
from scaleproof.simulate.thread_times import ProcessorTime
from scaleproof.spec import registry
from scaleproof.spec.case import parse_case
from scaleproof.spec.errors import SpecError
from tests.unit.claims.claims_samples import record, samples
from tests.unit.simulate.test_predict import fitted, line, stored
from tests.unit.simulate.test_simulator import case_of

SIZES = 4.0 ** np.arange(1, 12)
WINDOW = np.where(SIZES > 1e6, 4.0, 16.0)
SEND, RECEIVE = ProcessorTime(7e-6, 8e-11), ProcessorTime(12e-6, 5e-11)


def made_up(launches: int = 7, noise: float = 0.01) -> WindowTimes:
    """Each window is answered by an empty message."""
    spread = np.random.default_rng(2).lognormal(0, noise, (2, launches, len(SIZES)))
    sender = SEND.message + SEND.byte * SIZES + RECEIVE.message / WINDOW
    receiver = RECEIVE.message + RECEIVE.byte * SIZES + SEND.message / WINDOW
    return WindowTimes(SIZES, WINDOW, sender * spread[0], receiver * spread[1])


def test_the_fit_recovers_both_sides_without_the_answers_of_windows() -> None:
    found = fit_sides("x", made_up())
    expected = (SEND.message, SEND.byte, RECEIVE.message, RECEIVE.byte)
    for value, known in zip(found.values, expected, strict=True):
        assert value.value == pytest.approx(known, rel=0.03)
        assert value.low is not None and value.high is not None and value.low <= value.value <= value.high
    assert found.worst_error < 0.03


def test_few_launches_give_values_without_an_interval_and_few_sizes_none() -> None:
    assert fit_sides("x", made_up(launches=5)).values[0].low is None
    times = made_up()
    few = WindowTimes(times.nbytes[:2], times.window[:2], times.sender[:, :2], times.receiver[:, :2])
    with pytest.raises(SpecError, match="x: times of cores at 2 message sizes; a line needs at least 3"):
        fit_sides("x", few)
    none = WindowTimes(times.nbytes, times.window, times.sender * 0, times.receiver)
    with pytest.raises(SpecError, match="x: a processor time is missing or zero"):
        fit_sides("x", none)


CASE: dict[str, Any] = {
    "suite": "micro",
    "experiment": "bandwidth",
    "arm": "tcp",
    "program": "own",
    "entry": "windows",
    "transport": "tcp",
    "ranks": 2,
    "options": {"flows": "one_way", "window": 4},
}


def test_times_a_message_come_from_windows_and_processor_times_of_their_launch() -> None:
    rows = [
        (0, "window", 0, 0, 1, 100, 4.0),
        (0, "window", 1, 1, 2, 100, 4.0),
        (0, "window", 0, 2, 3, 1000, 2.0),
        (0, "window", 9, 9, 9, 100, 4.0, True),
        (0, "processor", 0, 0, 2, 100, 8e-5),
        (1, "processor", 0, 0, 2, 100, 4e-5),
        (0, "processor", 0, 2, 3, 1000, 4e-5),
        (1, "processor", 0, 2, 3, 1000, 6e-5),
    ]
    times = window_times([Launch(record(CASE), samples(*rows))])
    assert times.nbytes.tolist() == [100, 1000] and times.window.tolist() == [4, 2]
    assert times.sender[0] == pytest.approx([1e-5, 2e-5]) and times.receiver[0] == pytest.approx([5e-6, 3e-5])


def test_a_transport_that_polls_has_no_times_of_its_own() -> None:
    assert has_windows(parse_case(CASE))
    assert not has_windows(parse_case({**CASE, "options": {"flows": "both_ways", "window": 4}}))
    for transport in registry.with_trait("transport", "polls"):
        if registry.get("transport", transport).launcher == "local":
            assert not has_windows(parse_case({**CASE, "transport": transport}))
    assert "shm" in registry.with_trait("transport", "polls")


def side(message: float, byte: float) -> SideTime:
    parts = [Parameter(value=value, low=value / 2, high=2 * value) for value in (message, byte)]
    return SideTime(message_s=parts[0], byte_s=parts[1])


def stored_times(folder: Path, transport: str = "tcp") -> None:
    cost = ProcessorCost(
        arm=transport, transport=transport, buffers="registered", fabric="host", interface="lo", launches=7,
        send=side(SEND.message, SEND.byte), receive=side(RECEIVE.message, RECEIVE.byte),
        worst_error=0.1, worst_nbytes=4, runs=(),
    )  # fmt: skip
    times = ProcessorTimes(
        machine=machine_id(), code="c", fitted_at="now", suite="micro", experiment="bandwidth", size="smoke",
        transports=(cost,),
    )  # fmt: skip
    write_processor(folder, times)
    assert read_processor(folder, machine_id()) == times


def test_servers_take_the_fitted_time_of_a_core_and_without_a_fit_the_stated_one(tmp_path: Path) -> None:
    stored(tmp_path, fitted("tcp", "host", line((None, 1e-5, 1e-9)), 3e-10))
    case = case_of(strategy="parameter_server")
    stated = cost_model(case, tmp_path, machine_id())
    assert STATED in stated.assumed and stated.central().sending != SEND
    stored_times(tmp_path)
    model = cost_model(case, tmp_path, machine_id())
    assert STATED not in model.assumed
    assert (model.central().sending, model.central().receiving) == (SEND, RECEIVE)
    assert len({model.drawn(seed).sending for seed in range(3)}) == 3


def test_tensors_of_one_run_keep_their_stated_time(tmp_path: Path) -> None:
    stored(tmp_path, fitted("tensorflow-grpc", "host", line((None, 1e-5, 1e-9)), 3e-10))
    stored_times(tmp_path, "tensorflow-grpc")
    case = case_of(strategy="parameter_server", transport="tensorflow-grpc", framework="tensorflow")
    model = cost_model(case, tmp_path, machine_id())
    assert STATED in model.assumed and model.central().sending != SEND


def test_times_of_cores_of_another_form_are_one_line(tmp_path: Path) -> None:
    stored_times(tmp_path)
    (tmp_path / "machines" / machine_id() / "processor.json").write_text(json.dumps({"schema_version": 0}))
    with pytest.raises(SpecError, match="processor.json: no times of cores of this version; `scaleproof fit micro"):
        read_processor(tmp_path, machine_id())


@pytest.mark.parametrize(
    ("experiment", "code", "message"),
    [
        ("bandwidth", 2, "no finished windows of messages in one direction of micro bandwidth at size smoke"),
        ("jitter", 1, "no finished training of micro jitter at size smoke in"),
    ],
)
def test_an_experiment_without_launches_is_one_line(
    tmp_path: Path, experiment: str, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "micro", experiment, "--results", str(tmp_path)]) == code
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
