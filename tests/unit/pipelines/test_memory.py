"""What workers hold: what follows by hand, and which configurations fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scaleproof.pipelines.configurations import Machine, best, setting_of
from scaleproof.pipelines.memory import ITEM, STATE, StageBytes, kept_bytes, peak_bytes
from scaleproof.pipelines.schemes import schedule_of
from scaleproof.pipelines.throughput import Line, iteration_s
from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError
from scaleproof.workloads.networks import Network

FOUR = StageBytes((10, 10, 10, 10), (100.0,) * 4, (1.0,) * 4)
NETWORK: Network = registry.load("workload", "small_gpt")(None, 1.0)
MACHINE = Machine(8, 1e12, 1e-12, 2e-12, Line(0.0, 1e-10))


@pytest.mark.parametrize(
    ("scheme", "micro_batches", "stages_held", "under_way", "versions"),
    [
        ("gpipe", 8, 1, 8, 0),
        ("dapple", 8, 1, 4, 0),
        ("gems", 8, 2, 1, 0),
        ("chimera", 4, 2, 4, 0),
        ("pipedream", 8, 1, 4, 3),
        ("pipedream_2bw", 8, 1, 4, 1),
    ],
)
def test_a_worker_holds_weights_versions_and_micro_batches_under_way(
    scheme: str, micro_batches: int, stages_held: int, under_way: int, versions: int
) -> None:
    held = peak_bytes(schedule_of(scheme, 4, micro_batches), FOUR)
    assert held == stages_held * 10 * STATE + 10 * ITEM * versions + under_way * 100


def test_recomputing_keeps_inputs_and_one_whole_micro_batch() -> None:
    assert peak_bytes(schedule_of("gpipe", 4, 8), FOUR, recompute=True) == 10 * STATE + 8 * 1 + 100


def test_halves_of_a_micro_batch_count_as_halves() -> None:
    whole, halves = (peak_bytes(schedule_of(name, 4, 4), FOUR) for name in ("chimera", "chimera_halving"))
    assert halves == whole


def test_forward_doubling_holds_twice_the_activations() -> None:
    weights = 2 * 10 * STATE
    direct, doubled = (peak_bytes(schedule_of(name, 4, 8), FOUR) - weights for name in ("chimera", "chimera_doubling"))
    assert doubled == 2 * direct


def test_a_layer_of_a_transformer_keeps_what_the_formula_says() -> None:
    """Twice 34 - 3 masks and once 3 masks, and twice 5 - 1 and once 1 of pairs, bytes a value."""
    block = [layer for layer in NETWORK.layers if layer.name.startswith("layer2.")]
    positions, features = block[0].output_shape
    heads = next(layer.spec.heads for layer in block if hasattr(layer.spec, "heads"))
    assert sum(map(kept_bytes, block)) == 66 * positions * features + 9 * heads * positions**2


def test_the_fastest_of_what_fits_is_picked() -> None:
    roomy = best(NETWORK, "dapple", 32, MACHINE)
    tight = best(NETWORK, "dapple", 32, replace(MACHINE, memory=0.9 * roomy.peak))
    assert tight.peak <= 0.9 * roomy.peak and tight.seconds >= roomy.seconds
    setting = setting_of(NETWORK, "dapple", 32, MACHINE, tight.stages, tight.samples, tight.recompute)
    assert tight.seconds == iteration_s(setting) and tight.groups * tight.stages == 8


def test_memory_that_no_schedule_fits_is_one_line_with_what_would_do() -> None:
    with pytest.raises(SpecError, match=r"^no schedule of gpipe fits in 1e-06 GB a GPU; \S+ GB would do$") as refused:
        best(NETWORK, "gpipe", 32, replace(MACHINE, memory=1e3))
    enough = float(str(refused.value).split("; ")[1].split()[0]) * 1e9
    assert best(NETWORK, "gpipe", 32, replace(MACHINE, memory=1.01 * enough)).peak <= 1.01 * enough
    with pytest.raises(SpecError, match="no number of stages for 3 samples on 7 nodes"):
        best(NETWORK, "gpipe", 3, replace(MACHINE, nodes=7))
