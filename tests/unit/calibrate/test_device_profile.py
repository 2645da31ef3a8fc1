"""`scaleproof profile --device cuda`: what it measures, keeps and refuses; a prediction computes with it. A GPU itself
is in tests/integration/test_profile_gpu.py; here marks are those of the processor's clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scaleproof.calibrate import device_environment, device_profiles
from scaleproof.calibrate.device_environment import parse_nvidia_smi
from scaleproof.calibrate.device_layer_times import LEAST, DeviceModel, HostClock, measure
from scaleproof.calibrate.layer_times import SEED, times
from scaleproof.calibrate.measured_node_types import READY, default_name, measured_node_type
from scaleproof.cli import main
from scaleproof.frameworks.torch.torch_model import TorchModel
from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError
from scaleproof.workloads.data import initial_parameters
from scaleproof.workloads.datasets.synthetic import Synthetic
from scaleproof.workloads.networks import Network

LAYER_S, UPDATE_S = (1e-3, 2e-3, 1.5e-3), 5e-4
ENVIRONMENT = {"gpu": "NVIDIA H100 80GB HBM3", "torch": "2.11.0", "driver_version": "580.1"}


def network_of(name: str, side: int | None = None, width: float = 1.0) -> Network:
    network: Network = registry.load("workload", name)(side, width)
    return network


def tensors(network: Network, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    sample = Synthetic(network, batch, SEED, 0, 1).batch(0)
    return torch.from_numpy(sample.inputs), torch.from_numpy(sample.labels)


class Counting:
    """A clock whose marks are a millisecond apart."""

    def __init__(self) -> None:
        self.marks = 0

    def mark(self) -> int:
        self.marks += 1
        return self.marks

    def finish(self) -> None: ...

    def ns(self, first: int, later: int) -> int:
        return (later - first) * 1_000_000


def test_a_layers_time_is_from_mark_to_mark() -> None:
    network = network_of("dnn_digits")
    clock = Counting()
    model = DeviceModel(network, "cpu", "float32", clock)
    found = times(network, model.step(*tensors(network, 2)).read(clock))
    layers = len(network.layers)
    forward = [1e-3] * (layers - 1) + [2e-3]  # after the last layer follows the mark at the end of the loss
    assert found["forward"] == pytest.approx(forward)
    for layer, weight in list(zip(network.layers, found["weight"], strict=True))[:-1]:
        assert weight == pytest.approx(1e-3 * len(layer.variables)), layer.name
    assert found["update"] == pytest.approx([1e-3])


@pytest.mark.parametrize(
    ("name", "side", "width"), [("vgg_a", 32, 0.03), ("resnet50", 32, 0.05), ("seq2seq", None, 1.0)]
)
def test_the_times_of_the_layers_add_up_to_the_step(name: str, side: int | None, width: float) -> None:
    network, clock = network_of(name, side, width), HostClock()
    moments = DeviceModel(network, "cpu", "float32", clock).step(*tensors(network, 2)).read(clock)
    found = times(network, moments)
    assert sum(found["forward"]) * 1e9 == pytest.approx(moments.backward_start)
    assert sum(found["backward"]) * 1e9 == pytest.approx(moments.backward_end - moments.backward_start)
    assert min(found["forward"]) >= 0 and min(found["backward"]) >= 0


def test_the_model_that_is_measured_is_the_one_that_launches_train() -> None:
    network = network_of("vgg_a", 32, 0.03)
    launched = TorchModel(network, initial_parameters(network, SEED), learning_rate=1e-6, momentum=0.9, threads=1)
    gradients = [np.zeros(value.size, np.float32) for value in launched.values()]
    launched.bind(gradients, 1.0, lambda index: None)
    launched.forward(Synthetic(network, 2, SEED, 0, 1).batch(0))
    launched.backward()
    launched.update()
    measured = DeviceModel(network, "cpu", "float32", HostClock())
    measured.step(*tensors(network, 2))
    for own, other in zip(measured._gradients, gradients, strict=True):
        np.testing.assert_allclose(own.numpy().ravel(), other, rtol=1e-4, atol=1e-7)
    for parameter, value in zip(measured._parameters, launched.values(), strict=True):
        np.testing.assert_allclose(parameter.detach().numpy(), value, rtol=1e-5, atol=1e-8)


def test_bfloat16_multiplies_in_16_bits_and_keeps_parameters_in_32() -> None:
    network = network_of("dnn_digits")
    model = DeviceModel(network, "cpu", "bfloat16", HostClock())
    kinds: list[torch.dtype] = []
    model._module.layers[0].register_forward_hook(lambda module, inputs, output: kinds.append(output.dtype))
    model.step(*tensors(network, 2))
    assert kinds == [torch.bfloat16]
    assert {each.dtype for each in (*model._parameters, *model._gradients)} == {torch.float32}


def test_a_process_gives_medians_by_layer_and_the_number_of_steps() -> None:
    network = network_of("dnn_digits")
    found = measure(network, 2, "cpu", "float32", HostClock(), budget_s=0.0)
    assert found["steps"] == LEAST
    assert [len(found[name]) for name in ("forward", "backward", "weight")] == [len(network.layers)] * 3


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A GPU whose layers all take equally long, with this environment."""
    environment = dict(ENVIRONMENT)

    def run(arguments: dict[str, Any], request: Any) -> dict[str, Any]:
        count = len(request.network().layers)
        forward, backward, weight = ([seconds] * count for seconds in LAYER_S)
        rows = {"forward": forward, "backward": backward, "weight": weight, "update": [UPDATE_S]}
        return rows | {"steps": 20, "environment": dict(environment)}

    monkeypatch.setattr(device_profiles, "_run", run)
    monkeypatch.setattr(device_environment, "why_no_cuda", lambda device: "")
    return environment


@pytest.fixture
def profiled(gpu: dict[str, str], tmp_path: Path) -> Callable[..., int]:
    def command(*arguments: str) -> int:
        return main(["profile", "--workload", "vgg_a", "--device", "cuda", "--results", str(tmp_path), *arguments])

    return command


def test_a_measured_gpu_is_kept_as_a_node_type_with_its_environment(
    profiled: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profiled("--batch", "4") == 0 and profiled("--batch", "8") == 0 and profiled("--batch", "4") == 0
    printed = capsys.readouterr().out
    assert "h100_80gb_hbm3_bfloat16" in printed and "whole network" in printed
    kept = measured_node_type("h100_80gb_hbm3_bfloat16", tmp_path)
    assert kept is not None and kept.environment == ENVIRONMENT
    assert [profile.batch for profile in kept.profiles] == [4, 8]
    assert kept.profiles[0].layers[0].forward_s.n == 6 and "CUDA events" in kept.profiles[0].taken
    main(["profile", "--show", "--results", str(tmp_path)])
    assert "node types measured on a GPU" in capsys.readouterr().out


def test_times_under_another_driver_are_not_put_beside_earlier_ones(
    profiled: Callable[..., int], gpu: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert profiled("--batch", "4") == 0
    gpu["driver_version"] = "581.0"
    assert profiled("--batch", "8") == 2 and "give another --name" in capsys.readouterr().err
    assert profiled("--batch", "8", "--name", "h100_new_driver") == 0


def test_a_prediction_computes_with_what_was_measured(
    profiled: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profiled("--batch", "4", "--name", "mine") == 0
    capsys.readouterr()
    base = ["predict", "--workload", "vgg_a", "--profile", "mine", "--json", "--results", str(tmp_path)]
    layers = len(network_of("vgg_a").layers)
    expected_s = layers * (LAYER_S[0] + LAYER_S[1]) + UPDATE_S
    for arguments in (["--node", "h100x8", "--transport", "nccl"], ["--fabric", "100g", "--transport", "mpi"]):
        assert main([*base, *arguments, "--nodes", "1,2", "--per-rank", "4"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["points"][0]["compute_s"]["value"] == pytest.approx(expected_s, rel=1e-6)
        assert "NVIDIA H100 80GB HBM3, bfloat16" in found["compute"]
        assert any("the GPU that was measured" in each for each in found["assumed"])
    assert main([*base, "--per-rank", "16", "--fabric", "10g"]) == 2
    error = capsys.readouterr().err
    assert "was measured with vgg_a with 4 samples" in error and "--batch 16" in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--device", "gpu"], "write cpu, cuda or cuda:N"),
        (["--device", "cuda"], "not runnable here: torch"),
        (["--precision", "tf32"], "give --device cuda"),
        (["--device", "cuda", "--precision", "bfloat"], "did you mean 'bfloat16'"),
        (["--device", "cuda", "--threads", "2"], "--threads is for the processor"),
        (["--device", "cuda", "--name", "H 100"], "lower-case letters"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["profile", "--workload", "vgg_a", "--batch", "2", "--results", str(tmp_path), *arguments]) == 2
    printed = capsys.readouterr().err
    assert why in printed and printed.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--profile", "min"], "did you mean 'mine'"),
        (["--profile", "mine", "--efficiency", "0.5"], "was measured: leave out --efficiency"),
    ],
)
def test_a_mistake_in_a_prediction_is_one_line(
    arguments: list[str], why: str, profiled: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profiled("--batch", "4", "--name", "mine") == 0
    capsys.readouterr()
    command = ["predict", "--workload", "vgg_a", "--fabric", "10g", "--per-rank", "4", "--results", str(tmp_path)]
    assert main([*command, *arguments]) == 2
    printed = capsys.readouterr().err
    assert why in printed and printed.count("\n") == 1


def test_a_file_that_is_no_node_type_is_named(tmp_path: Path) -> None:
    (tmp_path / "node_types").mkdir()
    (tmp_path / "node_types" / "mine.json").write_text('{"name": "mine"}')
    with pytest.raises(SpecError, match=r"mine\.json: no node type of this version"):
        measured_node_type("mine", tmp_path)


def test_what_nvidia_smi_does_not_know_is_left_out() -> None:
    found = parse_nvidia_smi("580.159.04, 1980, 1755, 700.00, Enabled, [N/A]\n")
    assert found["driver_version"] == "580.159.04" and found["clocks_max_sm"] == "1980" and len(found) == 5


def test_a_name_follows_from_gpu_and_precision() -> None:
    assert default_name("NVIDIA H100 80GB HBM3", "tf32") == "h100_80gb_hbm3_tf32"


@pytest.mark.parametrize("path", sorted(READY.glob("*.json")), ids=lambda path: path.stem)
def test_a_node_type_that_comes_with_the_project_fits_its_networks(path: Path, tmp_path: Path) -> None:
    ready = measured_node_type(path.stem, tmp_path)
    assert ready is not None and ready.name == path.stem and ready.environment["gpu"]
    for profile in ready.profiles:
        network = network_of(profile.workload, profile.image_side, profile.width)
        assert ready.profile_of(network, profile.batch) is profile
        assert profile.node == ready.name and min(layer.forward_s.n for layer in profile.layers) >= 6
