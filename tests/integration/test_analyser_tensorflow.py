"""The graph analyser on TensorFlow's graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scaleproof.core.context import RankContext
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.remote.graph_analyser import Decision, PlacementError, decide
from tests.short_form import case_from

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"
SERVERS = {PS: 0, WORKER: 1, "": 1}


def decisions(shape: list[int | None]) -> tuple[list[Any], dict[str, Decision]]:
    """A layer whose weights lie on one server; inputs, activations and the gradient are made on another, and a select
    follows on the first."""
    import tensorflow as tf

    from scaleproof.remote.analyse_tensorflow import tensors_of

    @tf.function(input_signature=[tf.TensorSpec(shape, tf.float32), tf.TensorSpec((8, 4), tf.float32)])
    def step(inputs: Any, values: Any) -> Any:
        with tf.device(PS):
            held = tf.identity(values, name="held")
        with tf.device(WORKER):
            hidden = tf.matmul(inputs, held, name="hidden")
            gradient = tf.gradients(tf.reduce_sum(hidden), held, name="gradient")[0]
            positive = tf.where(hidden > 0, name="positive")
        with tf.device(PS):
            return held - gradient, tf.reduce_max(hidden), tf.reduce_max(positive)

    tensors = tensors_of(step.get_concrete_function(), SERVERS)
    return tensors, {decision.tensor.name: decision for decision in decide(tensors)}


def apart(body: Callable[[RankContext], None]) -> list[str]:
    """Run in a process of its own: TensorFlow's threads would not survive the forks of later tests."""
    case = case_from({"program": "own", "suite": "s", "experiment": "e", "arm": "a", "ranks": 1, "entry": "none"})
    return run_ranks(case, body, 120.0)


def test_weights_and_gradient_are_static_activations_with_a_free_batch_and_selections_are_dynamic() -> None:
    assert apart(_free_batch) == [""]


def _free_batch(_: RankContext) -> None:
    tensors, by_name = decisions([None, 8])
    assert (
        by_name["held:0"].placement,
        by_name["held:0"].nbytes,
        by_name["held:0"].tensor.source,
        by_name["held:0"].target,
    ) == ("static", 128, 0, 1)
    gradients = [
        decision
        for decision in by_name.values()
        if decision.tensor.name.startswith("gradient") and decision.target == 0
    ]
    assert [(decision.placement, decision.nbytes) for decision in gradients] == [("static", 128)]
    assert (by_name["hidden:0"].placement, by_name["hidden:0"].nbytes) == ("dynamic", None)
    assert by_name["positive:0"].placement == "dynamic"
    with pytest.raises(
        PlacementError, match="'hidden:0' cannot be placed statically: dimension 0 depends on the batch"
    ):
        decide(tensors, {"hidden:0": "static"})


def test_an_activation_with_a_fixed_batch_is_static() -> None:
    assert apart(_fixed_batch) == [""]


def _fixed_batch(_: RankContext) -> None:
    assert decisions([5, 8])[1]["hidden:0"].nbytes == 5 * 4 * 4
