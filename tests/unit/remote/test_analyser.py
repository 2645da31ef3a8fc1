"""The graph analyser: which tensors are static, which are dynamic and why, and what it refuses."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from scaleproof.remote.analyse_torch import GRADIENT, tensors_of
from scaleproof.remote.graph_analyser import Decision, PlacementError, Tensor, decide
from scaleproof.remote.tensor_channel import Edge

PS, WORKER = 0, 1


class Sparse(nn.Module):
    """Keeps only the positive entries, whose number depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nonzero(self.features(x)).sum(0)


class Unrolled(nn.Module):
    """A cell applied to each time step in turn; its outputs are stacked."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNNCell(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, outputs = torch.zeros(x.shape[0], 4), []
        for step in range(x.shape[1]):
            hidden = self.cell(x[:, step], hidden)
            outputs.append(hidden)
        return torch.stack(outputs, 1)


def decisions_by_name(
    module: nn.Module, shape: tuple[int, ...], free: dict[int, str], server_of=lambda name: PS
) -> dict[str, Decision]:
    decisions = decide(tensors_of(module, [torch.zeros(shape)], [free], server_of))
    return {decision.tensor.name: decision for decision in decisions}


def parameters_apart(module: nn.Module):
    names = dict(module.named_parameters())
    return lambda name: PS if name in names else WORKER


def cut_after(prefix: str):
    """Modules of that name on one server, all others on another."""
    return lambda name: PS if name.startswith(prefix) else WORKER


def test_weights_and_gradients_are_static_with_their_bytes() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
    decisions = decisions_by_name(module, (5, 3, 8, 8), {0: "batch"}, parameters_apart(module))
    assert set(decisions) == {name for own in dict(module.named_parameters()) for name in (own, f"{GRADIENT}{own}")}
    assert {decision.placement for decision in decisions.values()} == {"static"}
    assert decisions["3.weight"].nbytes == decisions[f"{GRADIENT}3.weight"].nbytes == 10 * 8 * 36 * 4
    assert (decisions["3.weight"].tensor.source, decisions["3.weight"].target) == (PS, WORKER)
    assert (decisions[f"{GRADIENT}3.weight"].tensor.source, decisions[f"{GRADIENT}3.weight"].target) == (WORKER, PS)


def test_an_activation_with_a_free_batch_is_dynamic_and_keeps_its_number_of_dimensions() -> None:
    module = nn.Sequential(nn.Linear(8, 6), nn.Linear(6, 4))
    decisions = decisions_by_name(module, (5, 8), {0: "batch"}, cut_after("0"))
    assert [
        (decision.placement, len(decision.tensor.shape or ()), decision.nbytes, decision.reason)
        for decision in decisions.values()
        if decision.tensor.name == "linear"
    ] == [("dynamic", 2, None, "dimension 0 depends on batch")]
    assert decisions["linear"].edge({"batch": 32}) == Edge("linear", PS, WORKER, (32, 6), static=False)
    with pytest.raises(PlacementError, match="'linear' depends on batch; give its largest size"):
        decisions["linear"].edge({})


def test_an_activation_with_a_fixed_batch_is_static() -> None:
    decisions = decisions_by_name(nn.Sequential(nn.Linear(8, 6), nn.Linear(6, 4)), (5, 8), {}, cut_after("0"))
    assert (decisions["linear"].placement, decisions["linear"].nbytes) == ("static", 5 * 6 * 4)


def test_a_free_sequence_makes_what_holds_all_steps_dynamic_and_one_step_static() -> None:
    decisions = decisions_by_name(
        Unrolled(), (5, 3, 8), {1: "sequence"}, lambda name: {"stack": 2, "x": 0}.get(name, WORKER)
    )
    assert (decisions["x"].placement, decisions["x"].reason) == ("dynamic", "dimension 1 depends on sequence")
    steps = [decision for decision in decisions.values() if decision.target == 2]
    assert len(steps) == 3 and {step.placement for step in steps} == {"static"}


def test_a_shape_that_depends_on_the_data_is_dynamic() -> None:
    decisions = decisions_by_name(Sparse(), (5, 8), {}, lambda name: WORKER if name == "sum" else PS)
    assert [
        (decision.tensor.name, decision.placement, decision.tensor.shape, decision.reason)
        for decision in decisions.values()
    ] == [("nonzero", "dynamic", ("the data", 2), "dimension 0 depends on the data")]


def test_a_static_place_for_a_dynamic_tensor_is_refused_with_one_line() -> None:
    tensors = [Tensor("hidden", ("batch", 6), "float32", PS, (WORKER,))]
    with pytest.raises(PlacementError) as refused:
        decide(tensors, {"hidden": "static"})
    assert str(refused.value) == "tensor 'hidden' cannot be placed statically: dimension 0 depends on batch"


def test_a_dynamic_place_may_be_asked_for_and_a_name_that_is_not_there_is_refused() -> None:
    tensors = [Tensor("weight", (4, 6), "float32", PS, (WORKER,))]
    assert decide(tensors, {"weight": "dynamic"})[0].placement == "dynamic"
    with pytest.raises(PlacementError, match="no tensor of the graph is called 'wieght'"):
        decide(tensors, {"wieght": "static"})


def test_an_unknown_number_of_dimensions_is_dynamic_and_what_stays_needs_no_place() -> None:
    decisions = decide(
        [Tensor("anything", None, "float32", PS, (PS, WORKER)), Tensor("home", (3,), "float32", PS, (PS,))]
    )
    assert [(decision.tensor.name, decision.placement) for decision in decisions] == [("anything", "dynamic")]
