"""A user's torch module becomes the table of layers that all other code uses."""

from __future__ import annotations

import sys
from itertools import accumulate
from pathlib import Path

import pytest
from torch import nn

from scaleproof.frameworks.torch.torch_model import module_of
from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError
from scaleproof.workloads import traced
from scaleproof.workloads.networks import Network
from scaleproof.workloads.transformer_layers import Attention, FeedForward

MODELS = """
import torch
from torch import nn

def cnn():
    convolution = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
    return nn.Sequential(*convolution, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.unused = nn.Embedding(50, 16), nn.Linear(3, 3)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.frozen, self.twice = nn.Linear(16, 16).requires_grad_(False), nn.Linear(16, 16)
        self.share = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        x = self.attention(x, x, x)[0]
        return self.twice(self.frozen(self.twice(x))) @ self.share.t()

class Looks(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)

    def forward(self, x):
        return self.first(x) if x.sum() > 0 else x

class CountsRates(nn.Linear):
    def __init__(self):
        super().__init__(4, 4)
        self.rate = torch.linspace(0, 1, 3)[1].item()  # constructors do this, and meta tensors cannot

def broken():
    raise ValueError("no weights\\nfound")

def needs(depth, width=1):
    return cnn()

silent = nn.ReLU()
number = 3
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "engineers_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "engineers_models", raising=False)
    return "engineers_models"


@pytest.mark.parametrize("name", registry.names("workload"))
def test_every_network_of_the_house_is_found_again_from_its_module(name: str, monkeypatch: pytest.MonkeyPatch):
    network: Network = registry.load("workload", name)(None, 1.0)
    monkeypatch.setattr(sys.modules[__name__], "made", lambda: module_of(network), raising=False)
    traced_network, unused = traced.trace(
        f"{__name__}:made", [traced.Input(network.input_shape, "int64" if network.vocabulary else "float32")]
    )
    assert (traced_network.parameters, traced_network.mac, unused) == (network.parameters, network.mac, [])
    own = list(accumulate(layer.weights + layer.biases for layer in network.trainable))
    read = list(accumulate(layer.weights + layer.biases for layer in traced_network.trainable))
    composite = any(isinstance(layer.spec, Attention | FeedForward) for layer in network.layers)
    assert set(own) <= set(read) if composite else own == read, "a layer of ours is one layer, or several in a row"
    if name not in (
        "lstm",
        "gru",
    ):  # their tables tell products with the input from those with the state; a trace does not
        assert traced_network.train_flop == network.train_flop


def test_parameters_stand_where_they_are_first_used_and_products_where_they_happen(models: str):
    network, unused = traced.trace(f"{models}:Tied", traced.parse_inputs("int64:5"))
    by_name = {layer.name: layer for layer in network.layers}
    assert [layer.name for layer in network.layers] == ["embed", "attention", "twice", "frozen", "twice#2", "body"]
    assert sum(variable.elements for variable in by_name["embed"].variables) == 50 * 16
    assert [len(by_name[name].variables) for name in ("attention", "twice", "frozen", "twice#2", "body")] == [
        4,
        2,
        0,
        0,
        0,
    ]
    assert by_name["attention"].mac == 5 * 16 * 64 + 2 * 5 * 5 * 16, (
        "projections, then queries with keys and weights with values"
    )
    assert by_name["body"].mac == 5 * 16 * 50
    assert unused == ["unused.weight", "unused.bias"]


def test_a_constructor_that_looks_at_values_is_run_with_memory(models: str):
    assert traced.trace(f"{models}:CountsRates", traced.parse_inputs("4"))[0].parameters == 20


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("nowhere.models:cnn", "3x8x8", "no module 'nowhere'"),
        ("engineers_models:cmn", "3x8x8", "has no 'cmn'; did you mean 'cnn'?"),
        ("engineers_models:number", "3", "is a int"),
        ("engineers_models:needs", "3", "needs arguments (depth)"),
        ("engineers_models:broken", "3", "cannot be made: ValueError: no weights found"),
        ("engineers_models:Looks", "4", "reads values"),
        ("engineers_models:silent", "4", "uses no trained parameter"),
        ("engineers_models:cnn", None, "give --input 3x224x224"),
        ("engineers_models:Tied", None, "give --input int64:128"),
        ("engineers_models:Looks", None, "give --input 4"),
        ("engineers_models:cnn", "1x8x8", "does not accept --input 1x8x8"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_write(models: str, name: str, shape: str | None, message: str):
    with pytest.raises(SpecError) as mistake:
        traced.trace(name, None if shape is None else traced.parse_inputs(shape))
    assert message in str(mistake.value)
    assert "\n" not in str(mistake.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [("3x", "is no shape"), ("flot32:3", "did you mean 'float32'?"), ("0x3", "a side of 0"), ("", "is no shape")],
)
def test_an_invalid_shape_is_an_error(text: str, message: str):
    with pytest.raises(SpecError, match=message.replace("?", r"\?")):
        traced.parse_inputs(text)


def test_inputs_are_shown_as_they_are_written():
    assert [str(shape) for shape in traced.parse_inputs("3x224x224, int64:128")] == ["3x224x224", "int64:128"]


def test_tracing_leaves_the_module_as_it_was(models: str, monkeypatch: pytest.MonkeyPatch):
    module = nn.Linear(4, 4, device="meta")
    monkeypatch.setattr(sys.modules[__name__], "kept", module, raising=False)
    traced.trace(f"{__name__}:kept", traced.parse_inputs("4"))
    assert not module._forward_hooks and not module._forward_pre_hooks
