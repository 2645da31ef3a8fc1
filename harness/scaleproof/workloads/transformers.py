"""Transformers of chimera2021 (Li and Hoefler 2021), Bert-48 and a GPT-2 with 64 layers, and a small one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scaleproof.workloads.layers import Add, LayerSpec, Linear, reduced
from scaleproof.workloads.sequence_layers import Embedding
from scaleproof.workloads.transformer_layers import (
    Attention,
    FeedForward,
    First,
    LayerNorm,
    LearnedPositions,
    Transform,
    Unembedding,
)
from scaleproof.workloads.workload import ReferenceCounts, Workload

SOURCE = (
    "configuration in the authors' code (Shigangli/Chimera), counts derived from the shapes; their sums are published"
)


def bert(layers: int, features: int, heads: int, vocabulary: int, positions: int) -> Sequence[LayerSpec]:
    """BERT (Devlin et al. 2019): normalisation after each sum, logits of masked tokens with a decoder matrix of their
    own, and whether the next sentence follows, from the first position."""
    table: list[LayerSpec] = [
        Embedding("embedding", vocabulary, features),
        LearnedPositions("positions", positions, types=2),
        LayerNorm("embedding.norm"),
    ]
    for number in range(1, layers + 1):
        before, name = table[-1].name, f"layer{number}"
        table += [
            Attention(f"{name}.attention", heads),
            Add(f"{name}.attention.sum", inputs=(before, f"{name}.attention")),
            LayerNorm(f"{name}.attention.norm"),
            FeedForward(f"{name}.feed_forward"),
            Add(f"{name}.feed_forward.sum", inputs=(f"{name}.attention.norm", f"{name}.feed_forward")),
            LayerNorm(f"{name}.feed_forward.norm"),
        ]
    last = table[-1].name
    return [
        *table,
        First("first", inputs=(last,)),
        Transform("pooler", "tanh"),
        Linear("next_sentence", 2, classifier=True),
        Transform("transform", "gelu", inputs=(last,)),
        LayerNorm("transform.norm"),
        Linear("decoder", vocabulary, classifier=True, each=True),
    ]


def gpt(layers: int, features: int, heads: int, vocabulary: int, positions: int) -> Sequence[LayerSpec]:
    """GPT-2 (Radford et al. 2019): normalisation before each block, a position sees those before it."""
    table: list[LayerSpec] = [
        Embedding("embedding", vocabulary, features),
        LearnedPositions("positions", positions),
    ]
    for number in range(1, layers + 1):
        before, name = table[-1].name, f"layer{number}"
        table += [
            LayerNorm(f"{name}.attention.norm"),
            Attention(f"{name}.attention", heads, causal=True),
            Add(f"{name}.attention.sum", inputs=(before, f"{name}.attention")),
            LayerNorm(f"{name}.feed_forward.norm"),
            FeedForward(f"{name}.feed_forward"),
            Add(f"{name}.feed_forward.sum", inputs=(f"{name}.attention.sum", f"{name}.feed_forward")),
        ]
    return [*table, LayerNorm("norm"), Unembedding("output", vocabulary)]


def _with_width(
    family: Callable[..., Sequence[LayerSpec]], layers: int, features: int, heads: int, vocabulary: int, positions: int
) -> Callable[[float], Sequence[LayerSpec]]:
    """A table with reduced features; heads stay where they divide them."""

    def table(width: float) -> Sequence[LayerSpec]:
        narrow = reduced(features, width)
        return family(layers, narrow, heads if narrow % heads == 0 else 1, vocabulary, positions)

    return table


bert48 = Workload(
    name="bert48",
    summary="BERT with 48 layers of 1024 features, 670 M parameters, 128 tokens",
    input_shape=(128,),
    layers=_with_width(bert, 48, 1024, 16, 30_522, 512),
    activation="tanh",
    vocabulary=30_522,
    auxiliary="next_sentence",
    reference=ReferenceCounts(
        weights=669_114_368,
        biases=675_644,
        forward_mac=83_055_872_000,
        source=SOURCE,
        provenance="author_code (configuration), derived (counts)",
    ),
)
gpt2_64 = Workload(
    name="gpt2_64",
    summary="GPT-2 with 64 layers of 1280 features, 1,389 M parameters, 632 tokens",
    input_shape=(632,),
    layers=_with_width(gpt, 64, 1280, 20, 50_257, 1024),
    activation="tanh",
    vocabulary=50_257,
    reference=ReferenceCounts(
        weights=1_388_259_840,
        biases=1_067_520,
        forward_mac=901_337_569_280,
        source=SOURCE,
        provenance="author_code (configuration), derived (counts)",
    ),
)
small_gpt = Workload(
    name="small_gpt",
    summary="small transformer with 8 layers of 32 features that predicts the next of 16 tokens",
    input_shape=(16,),
    layers=_with_width(gpt, 8, 32, 2, 32, 16),
    activation="tanh",
    vocabulary=32,
    reference=ReferenceCounts(
        weights=100_864,
        biases=3_392,
        forward_mac=1_720_320,
        source="this project: GPT-2's blocks with 32 features and 2 heads",
        provenance="own (shapes), derived (counts)",
    ),
)

PLUGINS = (bert48, gpt2_64, small_gpt)
