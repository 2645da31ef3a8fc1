"""A table of layers gives the same network in both frameworks and in keras.applications; batch normalisation breaks the
equivalence of workers; the small networks learn."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from scaleproof.core.context import RankContext
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.workloads.case_network import check_workload, network_of
from scaleproof.workloads.data import Batch, initial_parameters, open_data
from scaleproof.workloads.datasets.synthetic import Synthetic
from scaleproof.workloads.layers import Norm
from scaleproof.workloads.networks import Network, build, evaluated
from scaleproof.workloads.transformers import bert, gpt
from tests.short_form import train_case

SMALL = {
    "vgg_a": (32, 0.125),
    "overfeat_fast": (71, 0.125),
    "vgg16": (32, 0.125),
    "alexnet": (67, 0.125),
    "inception_v3": (75, 0.125),
    "inception_v3_imagenet": (75, 0.125),
    "vgg16_imagenet": (32, 0.125),
    "resnet101": (48, 0.125),
    "resnet18": (48, 0.125),
    "resnet50": (48, 0.125),
    "wide_resnet50": (48, 0.125),
    "mobilenet": (48, 0.25),
    "mobilenet_v2": (48, 0.25),
    "nasnet_mobile": (33, 0.25),
    "cd_dnn": (None, 0.05),
    "fcn5": (None, 0.05),
    "lstm": (None, 0.0625),
    "gru": (None, 0.0625),
}
"""Side and width at which a step takes well under a second."""
SAMPLES, TIMEOUT_S = 8, 300.0
LOSS, GRADIENT, NORMALISED_GRADIENT = 1e-5, 1e-5, 1e-3
"""Relative tolerances of two frameworks, with tanh throughout: ReLU's kinks turn rounding into whole units. Chains of
batch normalisations over few values amplify rounding: float32 lies as far from float64."""
AMPLIFIED = 3
"""Where that is more than the tolerance (the longest chain), two frameworks differ by at most so many times as much."""
KINKED_LOSS = 1e-3


def short_transformer(name: str) -> Network:
    """Two layers of the same kinds, with a small vocabulary, which `width` does not reduce."""
    family = bert if name == "bert48" else gpt
    auxiliary = "next_sentence" if name == "bert48" else None
    return build(name, (12,), family(2, 32, 2, 50, 16), 1.0, "tanh", vocabulary=50, auxiliary=auxiliary)


def small(name: str) -> Network:
    if name in ("bert48", "gpt2_64"):
        return short_transformer(name)
    network: Network = registry.load("workload", name)(*SMALL.get(name, (None, 1.0)))
    return network


def torch_gradients(network: Network, batch: Batch, form: str = "float32") -> tuple[float, list[np.ndarray]]:
    import torch

    from scaleproof.frameworks.torch.torch_model import loss_of, module_of

    torch.set_num_threads(1)
    module = module_of(network).to(getattr(torch, form))
    values = [torch.from_numpy(value.astype(form)) for value in initial_parameters(network, 5)]
    module.load_state_dict(dict(zip(module.state_dict(), values, strict=True)), assign=True)
    inputs = torch.from_numpy(batch.inputs)
    inputs = inputs.to(getattr(torch, form)) if inputs.is_floating_point() else inputs
    loss = loss_of(module, inputs, torch.from_numpy(batch.labels))
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    return loss.item(), [gradient.numpy() for gradient in gradients]


def tensorflow_gradients(network: Network, batch: Batch) -> tuple[float, list[np.ndarray]]:
    import tensorflow as tf

    from scaleproof.frameworks.tensorflow.tensorflow_model import loss

    values = [
        tf.constant(value.transpose(2, 3, 1, 0) if value.ndim == 4 else value)
        for value in initial_parameters(network, 5)
    ]
    with tf.GradientTape() as tape:
        tape.watch(values)
        loss_value = loss(network, tf.constant(batch.inputs), tf.constant(batch.labels), values)
    gradients = [tf.convert_to_tensor(gradient).numpy() for gradient in tape.gradient(loss_value, values)]
    return float(loss_value), [
        gradient.transpose(3, 2, 0, 1) if gradient.ndim == 4 else gradient for gradient in gradients
    ]


def apart(first: list[np.ndarray], second: list[np.ndarray]) -> float:
    """Euclidean norm of the difference over that of the first."""
    squares = [
        (float(((value - other) ** 2).sum()), float((value**2).sum()))
        for value, other in zip(first, second, strict=True)
    ]
    return float(np.sqrt(sum(difference for difference, _ in squares) / sum(size for _, size in squares)))


def test_both_frameworks_give_the_same_loss_and_gradients() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tensorflow")
    # In a process of its own: TensorFlow's threads would not survive the forks of later tests.
    assert run_ranks(train_case(workload="dnn_digits"), _compare_frameworks, TIMEOUT_S) == [""]


def _compare_frameworks(_: RankContext) -> None:
    for name in registry.names("workload"):
        network = small(name)
        batch = Synthetic(network, SAMPLES, 5, 0, 1).batch(0)
        smooth = replace(network, activation="tanh")
        (ours, gradients), (theirs, others) = torch_gradients(smooth, batch), tensorflow_gradients(smooth, batch)
        of_loss, of_gradients = LOSS, GRADIENT
        if any(isinstance(layer.spec, Norm) for layer in network.layers):
            exact, exact_gradients = torch_gradients(smooth, batch, "float64")
            of_loss = max(LOSS, AMPLIFIED * abs(ours / exact - 1))
            of_gradients = max(NORMALISED_GRADIENT, AMPLIFIED * apart(exact_gradients, gradients))
        assert theirs == pytest.approx(ours, rel=of_loss), name
        assert apart(gradients, others) < of_gradients, name
        if network.activation != "tanh":
            assert tensorflow_gradients(network, batch)[0] == pytest.approx(
                torch_gradients(network, batch)[0], rel=KINKED_LOSS
            ), name


def test_both_frameworks_normalise_test_samples_by_the_reference() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tensorflow")
    assert run_ranks(train_case(workload="bn_digits"), _compare_evaluated, TIMEOUT_S) == [""]


def _compare_evaluated(_: RankContext) -> None:
    import tensorflow as tf
    import torch

    from scaleproof.frameworks.tensorflow.tensorflow_model import TensorflowModel, outputs
    from scaleproof.frameworks.torch.torch_model import TorchModel, logits, module_of

    network = small("bn_digits")
    tested, reference = (Synthetic(network, 32, 5, 0, 1).batch(step) for step in range(2))
    inputs, values = np.concatenate([reference.inputs, tested.inputs]), initial_parameters(network, 5)
    models = [
        framework(network, values, learning_rate=0.1, momentum=0.0, threads=1)  # TensorFlow's before its first use
        for framework in (TensorflowModel, TorchModel)
    ]
    module = module_of(evaluated(network, 32))
    own = dict(zip(module.state_dict(), map(torch.from_numpy, values), strict=True))
    module.load_state_dict(own, assign=True)
    with torch.inference_mode():
        ours = logits(module, torch.from_numpy(inputs))[0].numpy()[32:]
    kernels = [tf.constant(value.transpose(2, 3, 1, 0) if value.ndim == 4 else value) for value in values]
    theirs = outputs(evaluated(network, 32), tf.constant(inputs), kernels).numpy()[32:]
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    labels = ours.argmax(axis=-1)
    for model in models:
        single = [
            model.accuracy(Batch(tested.inputs[index : index + 1], labels[index : index + 1]), reference)
            for index in range(32)
        ]
        assert np.mean(single) == model.accuracy(Batch(tested.inputs, labels), reference) == 1.0


def test_counts_are_those_of_keras_applications() -> None:
    pytest.importorskip("tensorflow")
    assert run_ranks(train_case(workload="dnn_digits"), _compare_with_keras, TIMEOUT_S) == [""]


def _compare_with_keras(_: RankContext) -> None:
    from keras import applications

    for name, model, classes in (
        ("inception_v3", applications.InceptionV3, 10),
        ("resnet50", applications.ResNet50, 1000),
        ("mobilenet", applications.MobileNet, 1000),
        ("mobilenet_v2", applications.MobileNetV2, 1000),
        ("nasnet_mobile", applications.NASNetMobile, 1000),
    ):
        network: Network = registry.load("workload", name)(None, 1.0)
        trained = model(weights=None, classes=classes).trainable_weights
        # Keras's ResNet-50 gives each convolution a bias, which the normalisation behind it takes away; its
        # Inception-v3 has no auxiliary head.
        theirs = [
            prod(weight.shape) for weight in trained if not (name == "resnet50" and weight.path.endswith("_conv/bias"))
        ]
        ours = [
            variable.elements
            for layer in network.layers
            if not layer.name.startswith("auxiliary")
            for variable in layer.variables
        ]
        assert sorted(theirs) == sorted(ours), name


@pytest.mark.parametrize("name", ["vgg16", "lstm", "seq2seq", "mobilenet"])
def test_two_workers_equal_one_but_for_batch_normalisation(name: str) -> None:
    pytest.importorskip("torch")
    assert run_ranks(train_case(workload=name, minibatch=SAMPLES), _compare_workers, TIMEOUT_S) == [""]


def _compare_workers(context: RankContext) -> None:
    assert isinstance(context.case, TrainCase)
    network = replace(small(context.case.workload), activation="tanh")
    _, alone = torch_gradients(network, Synthetic(network, SAMPLES, 5, 0, 1).batch(0))
    halves = [torch_gradients(network, Synthetic(network, SAMPLES, 5, rank, 2).batch(0))[1] for rank in range(2)]
    difference = apart(alone, [(first + second) / 2 for first, second in zip(*halves, strict=True)])
    local_statistics = any(isinstance(layer.spec, Norm) for layer in network.layers)
    assert difference > 0.05 if local_statistics else difference < GRADIENT


@pytest.mark.parametrize(
    ("workload", "data", "steps", "learning_rate"),
    [
        ("seq2seq", "reversal", 400, 0.2),
        ("cnn_digits", "digits", 300, 0.01),
        ("bn_digits", "digits", 150, 0.1),
        ("sentence_embedding", "topics", 200, 0.1),
    ],
)
def test_the_small_networks_learn(workload: str, data: str, steps: int, learning_rate: float) -> None:
    pytest.importorskip("torch")
    assert run_ranks(
        train_case(workload=workload, data=data, steps=steps, learning_rate=learning_rate), _learn, TIMEOUT_S
    ) == [""]


def _learn(context: RankContext) -> None:
    from scaleproof.frameworks.torch.torch_model import TorchModel

    case = context.case
    assert isinstance(case, TrainCase)
    check_workload(case)
    network = network_of(case)
    data = open_data(case, network, 1, 0)
    model = TorchModel(
        network, initial_parameters(network, 1), learning_rate=case.learning_rate, momentum=case.momentum, threads=1
    )
    model.bind([np.zeros(prod(shape), np.float32) for _, shape in network.parameter_shapes], 1.0, lambda _: None)
    assert model.accuracy(data.test) < 0.3
    for step in range(case.steps):
        model.forward(data.batch(step))
        model.backward()
        model.update()
    assert model.accuracy(data.test, data.reference) > (registry.get("dataset", case.dataset).target or 1.0)


def test_a_single_value_is_not_normalised() -> None:
    with pytest.raises(SpecError, match="would normalise a single value; give more than one sample per rank"):
        check_workload(
            train_case(
                workload="mobilenet",
                image_side=32,
                minibatch=2,
                ranks=2,
                transport="shm",
                collective="ring",
                strategy="sync",
            )
        )
    check_workload(
        train_case(
            workload="mobilenet",
            image_side=32,
            minibatch=4,
            ranks=2,
            transport="shm",
            collective="ring",
            strategy="sync",
        )
    )
