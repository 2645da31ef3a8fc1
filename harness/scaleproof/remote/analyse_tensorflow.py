"""The data-flow graph of a TensorFlow function: every tensor with its shape as TensorFlow inferred it, servers by the
devices of the operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from scaleproof.remote.graph_analyser import Tensor

UNKNOWN = "the batch, the sequence or the data"
"""TensorFlow reports None for all three."""


def tensors_of(function: Any, servers: Mapping[str, int]) -> list[Tensor]:
    """All tensors of a concrete function, in the order of its graph. `servers`: server of each device, by job and task
    ("/job:ps/task:0"); operations without a device run on the caller's server, ''."""
    return [
        Tensor(
            output.name,
            _shape(output.shape),
            output.dtype.name,
            _server(operation, servers),
            tuple(_server(user, servers) for user in output.consumers()),
        )
        for operation in function.graph.get_operations()
        for output in operation.outputs
        if _is_data(output.dtype)
    ]


def _is_data(dtype: Any) -> bool:
    """Whether a tensor of this type has a fixed size per element: no variable handle, variant or string."""
    return dtype not in (tf.resource, tf.variant, tf.string)


def _shape(shape: Any) -> tuple[int | str, ...] | None:
    return None if shape.rank is None else tuple(UNKNOWN if size is None else int(size) for size in shape.as_list())


def _server(operation: Any, servers: Mapping[str, int]) -> int:
    device = tf.DeviceSpec.from_string(operation.device)
    return servers[f"/job:{device.job}/task:{device.task}" if device.job is not None else ""]
