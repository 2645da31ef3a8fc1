"""Networks have the counts of the papers in every framework; reductions and data follow their rules."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from scaleproof.core.context import RankContext
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.workloads.case_network import check_workload, network_of
from scaleproof.workloads.data import initial_parameters, open_data
from scaleproof.workloads.layers import Conv, reduced
from scaleproof.workloads.networks import Layer, Network
from tests.short_form import case_from

LAYER_COUNTS = Path(__file__).parents[2] / "data" / "layer_counts"
WORKLOADS = {name: registry.load("workload", name) for name in registry.names("workload")}


def resolved(name: str, image_side: int | None = None, width: float = 1.0) -> Network:
    network: Network = registry.load("workload", name)(image_side, width)
    return network


def train_case(**fields: Any) -> TrainCase:
    values = {
        "suite": "test",
        "experiment": "test",
        "arm": "test",
        "program": "train",
        "ranks": 1,
        "strategy": "local_only",
        "workload": "dnn_digits",
        "minibatch": 8,
        "steps": 1,
    }
    case = case_from(values | fields)
    assert isinstance(case, TrainCase)
    return case


def row(layer: Layer) -> dict[str, Any]:
    spec, image = layer.spec, isinstance(layer.spec, Conv)
    kernel, stride, pad = (spec.kernel, spec.stride, spec.pad) if isinstance(spec, Conv) else (1, 1, 0)
    return {
        "name": layer.name,
        "ifm": layer.weight_shape[1],
        "ofm": layer.weight_shape[0],
        "k": kernel,
        "stride": stride,
        "pad": pad,
        "in_hw": layer.input_shape[-1] if image else 1,
        "out_hw": layer.output_shape[-1] if image else 1,
        "weights": layer.weights,
        "bias": layer.biases,
        "mac": layer.mac,
    }


@pytest.mark.parametrize("name", WORKLOADS)
def test_totals_are_those_of_the_reference(name: str) -> None:
    network, reference = resolved(name), WORKLOADS[name].reference
    weights, biases = (sum(getattr(layer, kind) for layer in network.layers) for kind in ("weights", "biases"))
    assert (weights, biases, network.mac) == (reference.weights, reference.biases, reference.forward_mac)


@pytest.mark.parametrize("path", sorted(LAYER_COUNTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_layer_has_the_counts_of_the_reference(path: Path) -> None:
    layers = [row(layer) for layer in resolved(path.stem).trainable if layer.weights]
    assert layers == yaml.safe_load(path.read_text())


@pytest.mark.parametrize("name", [name for name, workload in WORKLOADS.items() if workload.reference.mib])
def test_published_sizes_and_numbers_of_tensors(name: str) -> None:
    network, reference = resolved(name), WORKLOADS[name].reference
    size = round(4 * network.parameters / 2**20, 2)
    assert (len(network.parameter_shapes), size) == (reference.tensors, reference.mib)


def test_published_parameter_counts() -> None:
    published = {
        "vgg_a": 132_863_336,
        "overfeat_fast": 145_920_872,
        "cd_dnn": 45_122_648,
        "bert48": 669_790_012,
        "gpt2_64": 1_389_327_360,
    }
    assert {name: resolved(name).parameters for name in published} == published


def test_a_transformers_layers_have_the_derived_counts() -> None:
    for name, of_layer, embedding in (("bert48", 12_596_224, 31_782_912), ("gpt2_64", 19_677_440, 65_639_680)):
        counts: dict[str, int] = {}
        for layer in resolved(name).layers:
            part = layer.name.partition(".")[0]
            counts[part] = counts.get(part, 0) + layer.weights + layer.biases
        assert {count for part, count in counts.items() if part.startswith("layer")} == {of_layer}
        assert counts["embedding"] + counts["positions"] == embedding


@pytest.mark.parametrize(("name", "gflop"), [("vgg_a", 45.4811), ("overfeat_fast", 16.5899), ("cd_dnn", 0.2688)])
def test_training_flop_leave_out_the_input_gradient_of_the_first_layer(name: str, gflop: float) -> None:
    assert round(resolved(name).train_flop / 1e9, 4) == gflop


@pytest.mark.parametrize("name", registry.names("workload"))
def test_torch_builds_the_same_parameters_and_outputs(name: str) -> None:
    torch = pytest.importorskip("torch")
    from scaleproof.frameworks.torch.torch_model import logits, module_of

    network = resolved(name)
    module = module_of(network)
    dtype = torch.float32 if network.vocabulary is None else torch.int64
    heads = logits(module, torch.empty(2, *network.input_shape, dtype=dtype, device="meta"))
    assert [tuple(head.shape) for head in heads] == [
        (2, *network.layers[number].output_shape) for number in network.heads
    ]
    assert network.layers[network.heads[0]].output_shape == (*network.label_shape, network.classes)
    assert [tuple(parameter.shape) for parameter in module.parameters()] == [
        shape for _, shape in network.parameter_shapes
    ]
    assert sum(parameter.numel() for parameter in module.parameters()) == WORKLOADS[name].reference.parameters


def test_width_rounds_to_the_nearest_multiple_of_eight() -> None:
    assert [reduced(96, width) for width in (1.0, 0.25, 0.125, 0.05, 0.01)] == [96, 24, 16, 8, 8]
    assert reduced(10, 1.0) == 10


def test_width_leaves_inputs_and_classes_alone() -> None:
    network = resolved("cd_dnn", width=0.25)
    assert (network.input_shape, network.classes, network.trainable[3].weight_shape) == ((429,), 9304, (512, 512))


def test_a_smaller_side_shrinks_the_first_fully_connected_layer() -> None:
    assert resolved("vgg_a", 64).trainable[8].weight_shape == (4096, 512 * 2 * 2)


@pytest.mark.parametrize(
    ("name", "side"),
    [(name, workload.smallest_side) for name, workload in WORKLOADS.items() if workload.smallest_side],
)
def test_the_smallest_side_works_and_one_less_is_refused(name: str, side: int) -> None:
    assert resolved(name, side).trainable
    if side == 1:  # no smaller side exists
        return
    with pytest.raises(SpecError, match=f"image_side {side - 1} leaves no pixels after layer"):
        resolved(name, side - 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"workload": "cd_dnn", "workload.image_side": 8}, "takes no images"),
        ({"workload": "vgg_a", "workload.data": "digits"}, "does not fit data 'digits'"),
        ({"workload": "sentence_embedding", "workload.data": "reversal"}, "does not fit data 'reversal'"),
        ({"workload.data": "digits", "minibatch": 2000}, "larger than the training set"),
    ],
)
def test_impossible_workloads_are_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        check_workload(train_case(**fields))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "workload"),
    [
        ("synthetic", "dnn_digits"),
        ("synthetic", "seq2seq"),
        ("digits", "dnn_digits"),
        ("reversal", "seq2seq"),
        ("topics", "sentence_embedding"),
        ("markov_text", "small_gpt"),
    ],
)
@pytest.mark.parametrize("ranks", [2, 4])
def test_every_number_of_workers_sees_the_same_global_minibatch(data: str, workload: str, ranks: int) -> None:
    single, several = train_case(data=data, workload=workload), train_case(data=data, workload=workload, ranks=ranks)
    network = network_of(single)
    undivided, parts = open_data(single, network, 7, 0), [open_data(several, network, 7, rank) for rank in range(ranks)]
    for step in (0, 1, 200):
        assert np.array_equal(undivided.batch(step).inputs, np.concatenate([part.batch(step).inputs for part in parts]))
        assert np.array_equal(undivided.batch(step).labels, np.concatenate([part.batch(step).labels for part in parts]))


def test_digits_train_and_test_are_apart_and_depend_on_the_seed() -> None:
    case = train_case(data="digits", minibatch=1438)
    data, other = (open_data(case, network_of(case), seed, 0) for seed in (1, 2))
    assert (len(data.batch(0).labels), len(data.test.labels)) == (1438, 359)
    rows = [image.tobytes() for image in np.concatenate([data.batch(0).inputs, data.test.inputs])]
    assert len(set(rows)) == len(rows) == 1797
    assert not np.array_equal(data.test.inputs, other.test.inputs)


def test_initial_parameters_follow_the_seed_and_keep_the_variance() -> None:
    network = resolved("cd_dnn", width=0.25)
    first, again, other = (initial_parameters(network, seed) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])
    assert first[2].std() == pytest.approx((2 / 512) ** 0.5, rel=0.01)


@pytest.mark.parametrize("momentum", [0.9, 0.0])
def test_torch_steps_as_its_own_optimiser_does(momentum: float) -> None:
    pytest.importorskip("torch")
    # In a process of its own: torch.optim imports much.
    assert run_ranks(train_case(data="digits", momentum=momentum), _compare_with_torch_optim) == [""]


def _compare_with_torch_optim(context: RankContext) -> None:
    import torch

    from scaleproof.frameworks.torch.torch_model import TorchModel, module_of

    assert isinstance(context.case, TrainCase)
    network = network_of(context.case)
    data, momentum = open_data(context.case, network, 0, 0), context.case.momentum
    model = TorchModel(network, initial_parameters(network, 0), learning_rate=0.1, momentum=momentum, threads=1)
    model.bind([np.zeros(prod(shape), np.float32) for _, shape in network.parameter_shapes], 0.5, lambda _: None)
    module = module_of(network)
    values = map(torch.from_numpy, initial_parameters(network, 0))
    module.load_state_dict(dict(zip(module.state_dict(), values, strict=True)), assign=True)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=momentum)
    for step in range(4):
        batch = data.batch(step)
        model.forward(batch)
        model.backward()
        model.update()
        optimizer.zero_grad()
        (
            0.5
            * torch.nn.functional.cross_entropy(module(torch.from_numpy(batch.inputs)), torch.from_numpy(batch.labels))
        ).backward()
        optimizer.step()
    for own, parameter in zip(model.values(), module.parameters(), strict=True):
        np.testing.assert_allclose(own, parameter.detach().numpy(), rtol=1e-5, atol=1e-6)
