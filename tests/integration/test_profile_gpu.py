"""`scaleproof profile --device cuda` on a real GPU: times by CUDA events agree with the processor's clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from scaleproof.calibrate.device_layer_times import CudaClock, DeviceModel, set_precision
from scaleproof.calibrate.layer_times import SEED, times
from scaleproof.calibrate.measured_node_types import measured_node_type
from scaleproof.cli import main
from scaleproof.spec import registry
from scaleproof.workloads.datasets.synthetic import Synthetic
from scaleproof.workloads.networks import Network

STEPS = 20


@pytest.fixture(params=["cuda"])
def device() -> str:
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU that torch can use")
    return "cuda:0"


def test_events_take_as_long_as_the_processors_clock_says(device: str) -> None:
    network: Network = registry.load("workload", "resnet50")(None, 1.0)
    set_precision("bfloat16")
    clock = CudaClock()
    model, sample = DeviceModel(network, device, "bfloat16", clock), Synthetic(network, 64, SEED, 0, 1).batch(0)
    inputs, labels = (torch.from_numpy(values).to(device) for values in (sample.inputs, sample.labels))
    for _ in range(5):
        model.step(inputs, labels)
    clock.finish()
    began = time.perf_counter()
    marks = [model.step(inputs, labels) for _ in range(STEPS)]
    clock.finish()
    by_processor_s = time.perf_counter() - began
    layers = [times(network, each.read(clock)) for each in marks]
    by_events_s = sum(sum(map(sum, (step["forward"], step["backward"], step["update"]))) for step in layers)
    assert 0.9 < by_events_s / by_processor_s < 1.05


def test_a_gpu_becomes_a_node_type(device: str, tmp_path: Path) -> None:
    arguments = ["--workload", "vgg_a", "--batch", "8", "--launches", "2", "--name", "here", "--results", str(tmp_path)]
    assert main(["profile", "--device", "cuda", *arguments]) == 0
    kept = measured_node_type("here", tmp_path)
    assert kept is not None and kept.environment["gpu"] == torch.cuda.get_device_name(0)
    assert kept.profiles[0].step_s > 0
