"""Exchanges activations between the ranks of a group whose fully connected layers are divided (workloads/strips.py):
part-broadcast in the forward pass, part-reduce in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from scaleproof.spec.emulated import shrunk
from scaleproof.strategies.buckets import ITEM
from scaleproof.transports.contract import Array, Collectives, Handle
from scaleproof.workloads.strips import ActivationExchange

Run = Callable[[int, Callable[[], Handle]], None]
"""Makes a call that moves `nbytes` bytes, and returns when it has finished."""


class Activations:
    """Makes the exchanges of a rank's divided layers (see ActivationExchanges). A strategy that makes the calls
    elsewhere sets `run` before the first pass."""

    def __init__(self, group: Collectives, shrink: float = 1.0) -> None:
        """`shrink`: factor by which the number of features is reduced when compute is replayed."""
        self.group, self.shrink = group, shrink
        self.run: Run = _at_once

    def border(self) -> ActivationExchange:
        """See ActivationExchanges."""
        return _Border(self)

    def join(self, bounds: Sequence[int], last: bool) -> ActivationExchange:
        """See ActivationExchanges."""
        return _Join(self, bounds, last)

    def gather(self, source: Array, target: Array) -> None:
        """part-broadcast of flat arrays."""
        self.run(target.nbytes, lambda: self.group.all_gather(source, target))

    def reduce(self, source: Array, target: Array) -> None:
        """part-reduce of flat arrays."""
        self.run(source.nbytes, lambda: self.group.reduce_scatter(source, target))


class _Memory:
    """Float32 arrays in the transport's memory, one for each size: minibatch and test set have different sizes."""

    def __init__(self, group: Collectives) -> None:
        self._group = group
        self._arrays: dict[int, Array] = {}

    def of(self, *shape: int) -> Array:
        elements = int(np.prod(shape))
        if elements not in self._arrays:
            self._arrays[elements] = self._group.allocate(elements * ITEM).view(np.float32)
            self._arrays[elements].fill(0)
        return self._arrays[elements].reshape(shape)


class _Border:
    """Gathers the points of all ranks, in the order of ranks."""

    def __init__(self, activations: Activations) -> None:
        self._activations, self._ranks = activations, activations.group.world_size
        self._all, self._own = _Memory(activations.group), _Memory(activations.group)

    def forward(self, own: np.ndarray) -> np.ndarray:
        """See ActivationExchange."""
        everyone = self._all.of(self._ranks * len(own), own.shape[1])
        self._activations.gather(np.ascontiguousarray(own).reshape(-1), everyone.reshape(-1))
        return everyone

    def backward(self, gradient: np.ndarray) -> np.ndarray:
        """See ActivationExchange."""
        own = self._own.of(len(gradient) // self._ranks, gradient.shape[1])
        self._activations.reduce(np.ascontiguousarray(gradient).reshape(-1), own.reshape(-1))
        return own


class _Join:
    """Gathers the features of all ranks. Strips are padded to the widest one, since collectives move equal parts."""

    def __init__(self, activations: Activations, bounds: Sequence[int], last: bool) -> None:
        self._activations, self._last = activations, last
        widths = [shrunk(stop - start, activations.shrink) for start, stop in pairwise(bounds)]
        self._strips = [slice(stop - width, stop) for stop, width in zip(accumulate(widths), widths, strict=True)]
        self._features, self._widest = sum(widths), max(widths)
        self._mine = self._strips[activations.group.rank]
        self._width = self._mine.stop - self._mine.start
        self._own, self._all, self._joined = (_Memory(activations.group) for _ in range(3))

    def forward(self, own: np.ndarray) -> np.ndarray:
        """See ActivationExchange."""
        points = len(own)
        strip, strips, joined = (
            self._own.of(points, self._widest),
            self._strips_of(points),
            self._joined.of(points, self._features),
        )
        np.copyto(strip[:, : self._width], own)
        self._activations.gather(strip.reshape(-1), strips.reshape(-1))
        for columns, strip_of_rank in zip(self._strips, strips, strict=True):
            np.copyto(joined[:, columns], strip_of_rank[:, : columns.stop - columns.start])
        return joined

    def backward(self, gradient: np.ndarray) -> np.ndarray:
        """See ActivationExchange."""
        if self._last:
            return np.ascontiguousarray(gradient[:, self._mine])
        points = len(gradient)
        strip, strips = self._own.of(points, self._widest), self._strips_of(points)
        for columns, strip_of_rank in zip(self._strips, strips, strict=True):
            np.copyto(strip_of_rank[:, : columns.stop - columns.start], gradient[:, columns])
        self._activations.reduce(strips.reshape(-1), strip.reshape(-1))
        return strip[:, : self._width]

    def _strips_of(self, points: int) -> Array:
        return self._all.of(len(self._strips), points, self._widest)


def _at_once(nbytes: int, call: Callable[[], Handle]) -> None:
    call().wait()
