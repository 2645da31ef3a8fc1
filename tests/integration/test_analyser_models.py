"""The graph analyser on the models of the paper, layer by layer: no exchanged tensor of training depends on the batch,
every activation does."""

from __future__ import annotations

import pytest
import torch

from scaleproof.frameworks.torch.torch_model import module_of
from scaleproof.remote.analyse_torch import GRADIENT, tensors_of
from scaleproof.remote.graph_analyser import decide
from scaleproof.spec import registry
from scaleproof.workloads.networks import Network

SERVER, WORKER, NEXT = 0, 1, 2
MODELS = ["alexnet", "inception_v3", "vgg16", "lstm", "gru", "fcn5"]


@pytest.mark.parametrize("workload", MODELS)
def test_weights_and_gradients_are_static_and_activations_with_a_free_batch_dynamic(workload: str) -> None:
    network: Network = registry.load("workload", workload)(None, 1.0)
    module = module_of(network)
    own = dict(module.named_parameters())
    last = f"layers.{max(network.heads)}."

    def server_of(name: str) -> int:
        return SERVER if name in own else NEXT if name.startswith(last) else WORKER

    inputs = [torch.zeros((3, *network.input_shape), device="meta")]
    decisions = decide(tensors_of(module, inputs, [{0: "batch"}], server_of))
    exchanged = [decision for decision in decisions if SERVER in (decision.tensor.source, decision.target)]
    assert len(exchanged) == 2 * len(own) and {decision.placement for decision in exchanged} == {"static"}
    sent_back = sum(decision.nbytes or 0 for decision in exchanged if decision.tensor.name.startswith(GRADIENT))
    assert sent_back == 4 * network.parameters
    activations = [decision for decision in decisions if (decision.tensor.source, decision.target) == (WORKER, NEXT)]
    assert activations and {decision.placement for decision in activations} == {"dynamic"}
    assert {decision.reason.rpartition(" depends on ")[2] for decision in activations} == {"batch"}


@pytest.mark.parametrize("workload", ["lstm", "gru"])
def test_a_recurrent_models_inputs_depend_on_the_length_of_the_sequence(workload: str) -> None:
    network: Network = registry.load("workload", workload)(None, 0.05)
    inputs = [torch.zeros((3, *network.input_shape), device="meta")]
    tensors = tensors_of(module_of(network), inputs, [{0: "batch", 1: "sequence"}], lambda name: SERVER)
    assert next(tensor.shape for tensor in tensors if tensor.name == "x") == ("batch", "sequence", 1024)
