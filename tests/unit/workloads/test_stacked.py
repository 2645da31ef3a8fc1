"""Many replicas as one model give the gradients that each gives alone, in NumPy and in torch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from scaleproof.spec import registry
from scaleproof.spec.errors import FieldError
from scaleproof.workloads.data import Batch, initial_parameters
from scaleproof.workloads.datasets.synthetic import Synthetic
from scaleproof.workloads.layers import Activation, Linear
from scaleproof.workloads.networks import Network, build
from scaleproof.workloads.stacked import stacked_model
from scaleproof.workloads.stacked_contract import StackedModel, flat, momentum_step
from scaleproof.workloads.stacked_dense import LEAST_ROWS, DenseReplicas

REPLICAS, SAMPLES = 5, 6
TOLERANCE = 1e-6
SMOOTH = ["dnn_digits", "vgg_digits", "bn_digits", "seq2seq", "sentence_embedding", "linear_regression"]
"""Networks without kinks, where rounding cannot switch a unit."""


def network_of(name: str) -> Network:
    network: Network = registry.load("workload", name)(None, 1.0)
    return network


def linear_model(activation: Activation = "tanh", hidden: int = 0) -> Network:
    """A linear model of 1,000 parameters, or a small network with a hidden layer."""
    layers = [Linear("hidden", hidden)] if hidden else []
    return build("linear", (99,), [*layers, Linear("out", 10, classifier=True)], 1.0, activation)


def replicas(network: Network, count: int = REPLICAS) -> tuple[np.ndarray, list[Batch]]:
    """Parameters of different replicas, and a batch for each."""
    rows = np.stack([flat(initial_parameters(network, seed)) for seed in range(count)])
    rows += 0.05 * np.random.default_rng(0).standard_normal(rows.shape, np.float32)  # no bias or offset is 0
    return rows, [Synthetic(network, SAMPLES, seed, 0, 1).batch(0) for seed in range(count)]


def alone(network: Network, row: np.ndarray, batch: Batch) -> tuple[float, np.ndarray]:
    """Loss and gradient of one replica by the model that trains in processes."""
    from scaleproof.frameworks.torch.torch_model import TorchModel

    shapes = [shape for _, shape in network.parameter_shapes]
    ends = np.cumsum([prod(shape) for shape in shapes])
    values = [piece.reshape(shape) for piece, shape in zip(np.split(row, ends[:-1]), shapes, strict=True)]
    model = TorchModel(network, [value.copy() for value in values], learning_rate=0.1, momentum=0.0, threads=1)
    gradient = np.zeros(network.parameters, np.float32)
    model.bind(np.split(gradient, ends[:-1]), 1.0, lambda _: None)
    loss = model.forward(batch)
    model.backward()
    return loss, gradient


def apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def torch_replicas(network: Network) -> StackedModel:
    from scaleproof.frameworks.torch.torch_stacked import TorchReplicas

    return TorchReplicas(network)


@pytest.mark.parametrize("name", SMOOTH)
def test_torch_gives_each_replica_its_own_loss_and_gradient(name: str) -> None:
    pytest.importorskip("torch")
    network = network_of(name)
    rows, batches = replicas(network)
    losses, gradients = torch_replicas(network).gradients(rows, batches)
    for row, batch, loss, gradient in zip(rows, batches, losses, gradients, strict=True):
        expected_loss, expected = alone(network, row, batch)
        assert loss == pytest.approx(expected_loss, rel=TOLERANCE)
        assert apart(gradient, expected) < TOLERANCE


@pytest.mark.parametrize(
    "network",
    [network_of("dnn_digits"), linear_model(), linear_model("relu6", 24), network_of("linear_regression")],
    ids=["tanh", "linear", "relu6", "regression"],
)
def test_numpy_gives_each_replica_its_own_loss_and_gradient(network: Network) -> None:
    pytest.importorskip("torch")
    rows, batches = replicas(network)
    losses, gradients = DenseReplicas(network).gradients(rows, batches)
    for row, batch, loss, gradient in zip(rows, batches, losses, gradients, strict=True):
        expected_loss, expected = alone(network, row, batch)
        assert loss == pytest.approx(expected_loss, rel=TOLERANCE)
        assert apart(gradient, expected) < TOLERANCE


def test_a_gradient_is_the_slope_of_the_loss() -> None:
    network = linear_model("tanh", 8)
    rows, batches = replicas(network, 1)
    model, direction = DenseReplicas(network), np.random.default_rng(1).standard_normal(network.parameters)
    direction = (direction / np.linalg.norm(direction)).astype(np.float32)
    gradient = model.gradients(rows, batches).gradients[0]
    higher, lower = (model.gradients(rows + step * direction, batches).losses[0] for step in (0.01, -0.01))
    assert (higher - lower) / 0.02 == pytest.approx(float(gradient @ direction), rel=0.01)


@pytest.mark.parametrize("threads", [1, 2])
def test_any_subset_of_rows_gives_the_same(threads: int) -> None:
    network = network_of("dnn_digits")
    rows, batches = replicas(network, 2 * LEAST_ROWS)
    model = DenseReplicas(network, threads)
    losses, gradients = model.gradients(rows, batches)
    chosen = [5, 0, 2]
    some = model.gradients(rows[chosen], [batches[index] for index in chosen])
    assert np.array_equal(some.losses, losses[chosen]) and np.array_equal(some.gradients, gradients[chosen])


def test_gradients_are_written_into_the_callers_memory() -> None:
    network = network_of("dnn_digits")
    rows, batches = replicas(network)
    for model in (DenseReplicas(network), torch_replicas(network)):
        memory = np.full((REPLICAS, network.parameters), np.nan, np.float32)
        result = model.gradients(rows, batches, out=memory)
        assert result.gradients is memory and np.isfinite(memory).all()


@pytest.mark.parametrize("momentum", [0.9, 0.0])
def test_rows_are_stepped_as_a_model_steps_its_own(momentum: float) -> None:
    pytest.importorskip("torch")
    from scaleproof.frameworks.torch.torch_model import TorchModel

    network = linear_model("tanh", 8)
    rows, batches = replicas(network, 3)
    before, velocities = rows.copy(), np.zeros_like(rows)
    shapes = [shape for _, shape in network.parameter_shapes]
    ends = np.cumsum([prod(shape) for shape in shapes])[:-1]
    values = [piece.reshape(shape) for piece, shape in zip(np.split(rows[2].copy(), ends), shapes, strict=True)]
    trained = TorchModel(network, values, learning_rate=0.1, momentum=momentum, threads=1)
    trained.bind(np.split(np.zeros(network.parameters, np.float32), ends), 1.0, lambda _: None)
    for _ in range(5):
        gradients = DenseReplicas(network).gradients(rows[[2]], batches[2:]).gradients
        momentum_step(rows, velocities, gradients, 0.1, momentum, rows=[2])
        trained.forward(batches[2])
        trained.backward()
        trained.update()
    assert apart(rows[2], flat(trained.values())) < 1e-6 and apart(rows[2], before[2]) > 0.01
    assert np.array_equal(rows[:2], before[:2])


def test_numpy_and_torch_agree_on_accuracy() -> None:
    pytest.importorskip("torch")
    network = network_of("dnn_digits")
    rows, batches = replicas(network)
    batch = Batch(batches[0].inputs, np.arange(SAMPLES) % 10)
    average = rows.mean(axis=0)
    assert DenseReplicas(network).accuracy(average, batch) == torch_replicas(network).accuracy(average, batch)


def test_batch_normalisations_use_the_reference_and_not_the_samples_that_are_tested() -> None:
    pytest.importorskip("torch")
    network = network_of("bn_digits")
    rows, _ = replicas(network, 1)
    model, data = torch_replicas(network), Synthetic(network, 64, 3, 0, 1)
    tested, reference = data.batch(0), data.batch(1)
    outputs = [
        model.accuracy(rows[0], Batch(tested.inputs[index : index + 1], tested.labels[index : index + 1]), reference)
        for index in range(len(tested.labels))
    ]
    assert np.mean(outputs) == model.accuracy(rows[0], tested, reference)


def test_a_network_of_dense_layers_needs_no_torch() -> None:
    code = (
        "import sys; from scaleproof.spec import registry; from scaleproof.workloads.stacked import stacked_model; "
        "stacked_model(registry.load('workload', 'dnn_digits')(None, 1.0), 'torch'); "
        "print('torch' in sys.modules)"
    )
    assert _printed(code) == "False"


def test_torch_replicas_import_no_optimiser_of_their_own_and_no_compiler() -> None:
    pytest.importorskip("torch")
    code = (
        "import sys, torch; before = set(sys.modules); "
        "from tests.unit.workloads.test_stacked import network_of, replicas, torch_replicas; "
        "network = network_of('bn_digits'); torch_replicas(network).gradients(*replicas(network, 2)); "
        "print([name for name in set(sys.modules) - before if name.startswith(('torch.optim', 'torch._dynamo'))])"
    )
    assert _printed(code) == "[]"


def _printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_a_regression_has_the_gradient_of_half_the_mean_squared_error() -> None:
    generator = np.random.default_rng(2)
    rows = generator.standard_normal((3, 8), np.float32)
    batches = [
        Batch(generator.standard_normal((4, 7), np.float32), generator.standard_normal(4, np.float32)) for _ in range(3)
    ]
    network = build("regression", (7,), [Linear("out", 1, classifier=True)], 1.0, "tanh")
    model = DenseReplicas(network)
    losses, gradients = model.gradients(rows, batches)
    for row, batch, loss, gradient in zip(rows, batches, losses, gradients, strict=True):
        error = batch.inputs @ row[:7] + row[7] - batch.labels
        assert loss == pytest.approx(float((error**2).mean() / 2), rel=1e-5)
        assert apart(gradient, np.append(batch.inputs.T @ error, error.sum()) / 4) < 1e-6
        explained = 1 - float((error**2).mean() / batch.labels.var())
        assert model.accuracy(row, batch) == pytest.approx(max(0.0, explained), abs=1e-5)


def test_what_does_not_fit_is_one_line() -> None:
    network = network_of("dnn_digits")
    rows, batches = replicas(network)
    model = DenseReplicas(network)
    with pytest.raises(ValueError, match=r"parameters are float32 \(5, 7\), must be float32 \(replicas, 42634\)"):
        model.gradients(rows[:, :7], batches)
    with pytest.raises(ValueError, match="4 batches for 5 replicas"):
        model.gradients(rows, batches[:4])
    short = replace(batches[0], inputs=batches[0].inputs[:2], labels=batches[0].labels[:2])
    with pytest.raises(ValueError, match="batches of different sizes"):
        model.gradients(rows, [short, *batches[1:]])
    with pytest.raises(ValueError, match="network 'bn_digits' is no chain of fully connected layers"):
        DenseReplicas(network_of("bn_digits"))
    with pytest.raises(FieldError, match="framework 'tensorflow' has no model of many replicas; use torch"):
        stacked_model(network_of("bn_digits"), "tensorflow")
