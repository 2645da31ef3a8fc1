"""Buckets with a distributed update: every rank of a group updates one part (das2016: part-reduce, update of the owned
part, part-broadcast)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from scaleproof.strategies import buckets
from scaleproof.strategies.buckets import Bucket, Parameter
from scaleproof.transports.contract import Array, Collectives, Done, Handle


@dataclass(slots=True)
class Part:
    """A bucket of gradients, its parameters in the same order, and the part of both that this rank updates. A single
    rank's part is the whole bucket."""

    group: Collectives
    gradients: Bucket
    values: Array
    own_gradients: Array
    own_values: Array

    @classmethod
    def of(cls, group: Collectives, gradients: Bucket, values: Array) -> Self:
        """A part with memory for this rank's share."""
        if group.world_size == 1:
            return cls(group, gradients, values, gradients.buffer, values)
        own = [group.allocate(values.nbytes // group.world_size).view(np.float32) for _ in range(2)]
        return cls(group, gradients, values, *own)

    @property
    def alone(self) -> bool:
        """Whether this rank is the only one of the group."""
        return self.group.world_size == 1

    def copy_own_values(self) -> None:
        """Copies this rank's part of the parameters into its memory."""
        if not self.alone:
            size = self.own_values.size
            np.copyto(self.own_values, self.values[self.group.rank * size : (self.group.rank + 1) * size])

    def reduce(self) -> Handle:
        """part-reduce: the sum over ranks of this rank's part of the gradients."""
        return Done() if self.alone else self.group.reduce_scatter(self.gradients.buffer, self.own_gradients)

    def broadcast(self) -> Handle:
        """part-broadcast: every rank's part to all ranks."""
        return Done() if self.alone else self.group.all_gather(self.own_values, self.values)


@dataclass(slots=True)
class SharedParameters:
    """Parameters that the ranks of a group hold replicas of: parts in the order of the backward pass, and views of each
    parameter."""

    parts: list[Part]
    gradients: dict[int, Array]
    values: dict[int, Array]


def allocate(
    group: Collectives, parameters: Sequence[Parameter], indices: Sequence[int], limit_nbytes: float
) -> SharedParameters:
    """Allocates memory for the parameters `indices`, which are also the members of the buckets."""
    chosen = [parameters[index] for index in indices]
    (grads, grad_views), (values, value_views) = (
        buckets.allocate(chosen, limit_nbytes, group.allocate, group.world_size) for _ in range(2)
    )
    named = [Bucket(bucket.buffer, tuple(indices[member] for member in bucket.members)) for bucket in grads]
    parts = [Part.of(group, bucket, value.buffer) for bucket, value in zip(named, values, strict=True)]
    return SharedParameters(
        parts, dict(zip(indices, grad_views, strict=True)), dict(zip(indices, value_views, strict=True))
    )
