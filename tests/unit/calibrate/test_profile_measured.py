"""Timing of layers: every part of a step is counted once, in networks of every shape; results of several processes are
combined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.calibrate import measured_profiles as profiles
from scaleproof.calibrate.layer_times import SEED, TimedModel, times
from scaleproof.calibrate.measured_profiles import ProfileRequest, measure_profile
from scaleproof.cli import main
from scaleproof.record.digest import machine_id
from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError
from scaleproof.workloads.datasets.synthetic import Synthetic
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import profile_of, read
from tests.short_form import case_from

NETWORKS = [
    ("vgg_a", 32, 0.03),
    ("dnn_digits", None, 1.0),
    ("resnet50", 32, 0.05),
    ("inception_v3", 139, 0.05),
    ("seq2seq", None, 1.0),
]


def network_of(name: str, side: int | None, width: float) -> Network:
    network: Network = registry.load("workload", name)(side, width)
    return network


@pytest.mark.parametrize(("name", "side", "width"), NETWORKS)
def test_the_times_of_the_layers_add_up_to_the_step(name: str, side: int | None, width: float) -> None:
    network = network_of(name, side, width)
    moments = TimedModel(network, 1).timed_step(Synthetic(network, 2, SEED, 0, 1).batch(0))
    layers = times(network, moments)
    assert sum(layers["forward"]) == pytest.approx((moments.backward_start - moments.start) / 1e9)
    assert sum(layers["backward"]) == pytest.approx((moments.backward_end - moments.backward_start) / 1e9)
    assert (
        min(layers["forward"]) >= 0 and min(layers["backward"]) >= 0 and len(layers["forward"]) == len(network.layers)
    )
    for layer, backward, weight in zip(network.layers, layers["backward"], layers["weight"], strict=True):
        assert 0 <= weight <= backward and (weight > 0) == bool(layer.variables), layer.name


def process(*seconds: float) -> dict[str, Any]:
    """Output of a process for a network whose layers all take equally long."""
    count = len(network_of("dnn_digits", None, 1.0).layers)
    forward, backward, weight, update = seconds
    return {
        "forward": [forward] * count,
        "backward": [backward] * count,
        "weight": [weight] * count,
        "update": [update],
        "steps": 5,
    }


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Replaces the processes by these answers, in this order."""
    answers = [process(1e-3 * number, 2e-3 * number, 1.5e-3, 1e-4) for number in range(1, 8)]
    remaining = iter(answers)
    monkeypatch.setattr(profiles, "_run", lambda request: next(remaining))
    return answers


def test_a_profile_has_the_median_of_its_processes_and_their_interval(processes: list[dict[str, Any]]) -> None:
    progress: list[str] = []
    profile = measure_profile(ProfileRequest("dnn_digits", None, 1.0, 16), 7, progress.append)
    layer = profile.layers[0]
    assert (layer.forward_s.median, layer.forward_s.low, layer.forward_s.high, layer.forward_s.n) == (
        4e-3,
        1e-3,
        7e-3,
        7,
    )
    assert (layer.backward_s.median, layer.weight_s.median, profile.update_s.median) == (8e-3, 1.5e-3, 1e-4)
    assert len(progress) == 7 and "process 7 of 7" in progress[-1]


def test_too_few_processes_give_no_interval(processes: list[dict[str, Any]]) -> None:
    layer = measure_profile(ProfileRequest("dnn_digits", None, 1.0, 16), 2, lambda text: None).layers[0]
    assert (layer.forward_s.low, layer.forward_s.n) == (None, 2)


def test_the_command_stores_what_a_case_then_finds(
    processes: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", "--workload", "dnn_digits", "--batch", "4", "--results", str(tmp_path)]) == 0
    case = case_from(
        {
            "suite": "s",
            "experiment": "e",
            "arm": "a",
            "program": "train",
            "ranks": 2,
            "transport": "tcp",
            "collective": "ring",
            "strategy": "sync",
            "workload": "dnn_digits",
            "minibatch": 8,
            "steps": 1,
            "compute": "replay",
        }
    )
    folder = tmp_path / "machines" / machine_id()
    printed = capsys.readouterr().out
    assert "whole network" in printed
    assert profile_of(case, folder) == read(Path(printed.splitlines()[-1]))  # type: ignore[arg-type]
    assert main(["profile", "--show", "--results", str(tmp_path)]) == 0 and "dnn_digits" in capsys.readouterr().out


def test_the_profiles_that_a_suite_replays_are_measured_once(
    processes: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    base = (
        "program: train, transport: tcp, collective: ring, strategy: sync, workload: dnn_digits, minibatch: 8, steps: 2"
    )
    (folder / "suite.yaml").write_text(
        f"suite: mine\ntitle: t\nexperiments:\n  e:\n    summary: s\n    base: {{{base}, ranks: 2}}\n"
        "    arms: {real: {}, asleep: {compute: replay}, node: {compute: {name: replay, profile: xeon_e5_2698v3_x2, "
        "efficiency: 0.5}}}\n"
        "    sizes: {ci: {launches: 1, matrix: [{arms: [real, asleep, node]}]}}\n"
    )
    arguments = ["profile", str(folder), "--size", "ci", "--results", str(tmp_path)]
    assert main(arguments) == 0 and capsys.readouterr().out.count("whole network") == 1
    assert main(arguments) == 0 and "every profile that these cases replay exists" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "give SUITE, or --workload and --batch"),
        (["--workload", "vgg_b", "--batch", "1"], "vgg_b"),
        (["--workload", "vgg_a", "--batch", "0"], "--batch, --threads and --launches are at least 1"),
        (["--workload", "vgg_a", "--batch", "1", "--framework", "tensorflow"], "layers are timed in 'torch' only"),
        (["--workload", "vgg_a", "--batch", "1", "--image-side", "8"], "leaves no pixels"),
    ],
)
def test_a_mistake_is_a_one_line_error(
    arguments: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", *arguments, "--results", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert why in printed and printed.count("\n") == 1


def test_a_framework_without_layers_to_time_is_refused_where_a_case_replays_it(tmp_path: Path) -> None:
    case = case_from(
        {
            "suite": "s",
            "experiment": "e",
            "arm": "a",
            "program": "train",
            "ranks": 2,
            "transport": "tcp",
            "collective": "ring",
            "strategy": "sync",
            "workload": "dnn_digits",
            "minibatch": 8,
            "steps": 1,
            "compute": "replay",
            "framework": "tensorflow",
        }
    )
    with pytest.raises(SpecError, match="tensorflow compiles a backward pass as a whole"):
        profile_of(case, tmp_path)  # type: ignore[arg-type]
