"""Networks cut into stages: sizes of the published pipelines, and what cannot be cut."""

from __future__ import annotations

import pytest

from scaleproof.spec import registry
from scaleproof.spec.errors import FieldError
from scaleproof.workloads.networks import Network
from scaleproof.workloads.stages import cut


def network(name: str) -> Network:
    found: Network = registry.load("workload", name)(None, 1.0)
    return found


@pytest.mark.parametrize(
    ("name", "stages", "largest"),
    [
        ("bert48", 16, 69_571_584),
        ("bert48", 8, 107_360_256),
        ("bert48", 4, 182_937_600),
        ("bert48", 2, 334_092_288),
        ("gpt2_64", 64, 85_317_120),
        ("gpt2_64", 32, 104_994_560),
        ("gpt2_64", 16, 144_349_440),
        ("gpt2_64", 8, 223_059_200),
    ],
)
def test_the_first_stage_has_the_published_number_of_gradients(name: str, stages: int, largest: int) -> None:
    """Messages of all-reduce in float32 values, from the authors' code (Shigangli/Chimera)."""
    assert cut(network(name), stages, "blocks")[0].parameters == largest


@pytest.mark.parametrize("name", ["vgg_a", "resnet50", "small_gpt"])
def test_stages_have_all_layers_in_order(name: str) -> None:
    whole = network(name)
    parts = cut(whole, 4)
    assert [layer.name for part in parts for layer in part.layers] == [layer.name for layer in whole.layers]
    for one, following in zip(parts, parts[1:], strict=False):
        assert following.input_shape == one.layers[-1].output_shape


def test_the_largest_stage_is_as_small_as_layers_allow() -> None:
    whole = network("vgg_a")
    largest = max(part.mac for part in cut(whole, 4))
    work = [layer.mac for layer in whole.layers]
    every = min(
        max(sum(work[:a]), sum(work[a:b]), sum(work[b:c]), sum(work[c:]))
        for a in range(1, len(work))
        for b in range(a + 1, len(work))
        for c in range(b + 1, len(work))
    )
    assert largest == every


def test_a_residual_block_is_not_cut() -> None:
    for part in cut(network("resnet50"), 8):
        own = {layer.name for layer in part.layers}
        outside = {name for layer in part.layers for name in layer.inputs if name not in own}
        assert outside == {"input"}


@pytest.mark.parametrize(
    ("name", "stages", "balance", "message"),
    [
        ("small_gpt", 3, "blocks", "3 stages do not divide the 8 blocks of small_gpt; 2 or 4 would do"),
        ("vgg_a", 4, "blocks", "vgg_a has no numbered blocks; use 'work'"),
        ("dnn_digits", 40, "work", "40 stages, and dnn_digits can be cut into"),
    ],
)
def test_what_cannot_be_cut_is_refused(name: str, stages: int, balance: str, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        cut(network(name), stages, balance)  # type: ignore[arg-type]
