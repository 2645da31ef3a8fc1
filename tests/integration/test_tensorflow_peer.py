"""What the timed part of TensorFlow's peer contains."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.tensorflow_peer import timed_all_reduce

ROOT = Path(__file__).parents[2]


def before(*operations: Any) -> dict[str, Any]:
    """Everything that must have run before the last of these has, with them, by name."""
    found: dict[str, Any] = {}
    pending = list(operations)
    while pending:
        operation = pending.pop()
        if operation.name not in found:
            found[operation.name] = operation
            pending += [*operation.control_inputs, *(tensor.op for tensor in operation.inputs)]
    return found


def test_the_copy_that_the_ring_works_on_is_made_before_the_barrier_and_none_is_in_the_time() -> None:
    pytest.importorskip("tensorflow")
    code = f"from {__name__} import look_at_graph; look_at_graph()"  # ranks that this process forks must not inherit it
    looked = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert looked.returncode == 0, looked.stderr[-2000:]


def look_at_graph() -> None:
    import tensorflow as tf

    with tf.Graph().as_default():
        value = tf.compat.v1.placeholder(tf.float32, [8])
        elapsed, _ = timed_all_reduce(tf, tf.negative, value)  # stands for the collective
    end, start = (tensor.op for tensor in elapsed.op.inputs)
    assert (end.type, start.type) == ("Timestamp", "Timestamp") and end is not start
    earlier, timed = before(start), before(end)
    assert start.name in timed, "the clock is read first at the start"
    within = [operation.type for name, operation in timed.items() if name not in earlier and operation is not end]
    assert within == ["Neg"], "the collective alone"
    [barrier] = [operation for operation in start.control_inputs if operation.type == "Neg"]
    assert "DeepCopy" in {operation.type for operation in before(barrier).values()}
