"""Compute by the clock: a rank sleeps for the time that each layer takes in a profile, and its gradients are ready when they would be.

What is slept lies on a schedule that starts with the pass, so that the lateness of one awakening does not add to the next. Between passes nothing is caught
up: how late the last awakening of each was is kept, in `late`."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic_ns as now

import numpy as np

from harness.spec.emulated import shrunk
from harness.workloads.data import Batch
from harness.workloads.model import Births
from harness.workloads.networks import Network
from harness.workloads.profile import Profile

SECOND = 1e9
_PR_SET_TIMERSLACK = 29
SLACK_NS = 1
"""By how much the kernel may delay a timer of this thread to join it with others; 50,000 unless told."""


@dataclass(slots=True)
class Late:
    """Of all passes so far: how long they were to last, and by how much their ends came late; in ns."""

    passes: int = 0
    planned_ns: int = 0
    late_ns: int = 0
    worst_ns: int = 0


class ReplayModel:
    """Implements workloads/model.py without any numbers: parameters hold zeros that nobody computes with, `shrink` times fewer than the network's."""

    def __init__(self, network: Network, profile: Profile, dilation: float, shrink: float) -> None:
        sharper_timers()
        self._sizes = [shrunk(math.prod(shape), shrink) for _, shape in network.parameter_shapes]
        # Zeros take no memory until somebody writes them.
        self._values = [np.zeros(size, np.float32) for size in self._sizes]
        self._forward_ns = round(profile.forward_s * dilation * SECOND)
        self._update_ns = profile.update_s.median * dilation * SECOND
        self._events = backward_events(network, profile, dilation)
        self._backward_ns = round(profile.backward_s * dilation * SECOND)
        self._ready: Callable[[int], None] = _nobody
        self.late = Late()

    @property
    def sizes(self) -> list[int]:
        """Elements of every parameter."""
        return list(self._sizes)

    def bind(self, gradients: Sequence[np.ndarray], scale: float, ready: Callable[[int], None]) -> None:
        """See Model; gradients stay as they are."""
        self._ready = ready

    def forward(self, batch: Batch) -> float:
        """See Model; there is no loss."""
        self._start = now()
        self._sleep_until(self._start + self._forward_ns)
        self._note(self._start + self._forward_ns, self._forward_ns)
        return math.nan

    def backward(self) -> None:
        """See Model: on the schedule that the forward pass began."""
        start = self._start + self._forward_ns
        for due_ns, parameters in self._events:
            self._sleep_until(start + due_ns)
            for index in parameters:
                self._ready(index)
        self._sleep_until(start + self._backward_ns)
        self._note(start + self._backward_ns, self._backward_ns)

    def update(self, only: Sequence[int] | None = None) -> None:
        """See Model; of some parameters as long as their share of all elements."""
        share = 1.0 if only is None else sum(self._sizes[index] for index in only) / sum(self._sizes)
        self._sleep_until(now() + round(self._update_ns * share))

    def live_in(self, memory: Sequence[np.ndarray], births: Births | None = None) -> bool:
        """See Model."""
        self._values = list(memory)
        return True

    def values(self) -> list[np.ndarray]:
        """See Model; flat."""
        return self._values

    def load(self, values: Sequence[np.ndarray]) -> None:
        """See Model; nobody reads them."""

    def accuracy(self, batch: Batch) -> float:
        """See Model; nothing was learned."""
        return math.nan

    @staticmethod
    def _sleep_until(moment_ns: int) -> None:
        left = moment_ns - now()
        if left > 0:
            time.sleep(left / SECOND)

    def _note(self, due_ns: int, planned_ns: int) -> None:
        behind = max(0, now() - due_ns)
        self.late.passes += 1
        self.late.planned_ns += planned_ns
        self.late.late_ns += behind
        self.late.worst_ns = max(self.late.worst_ns, behind)


class NoData:
    """Nothing is computed, so nothing is drawn."""

    test = Batch(np.empty(0, np.float32), np.empty(0, np.int64))

    def batch(self, step: int) -> Batch:
        """No samples."""
        return self.test


def backward_events(network: Network, profile: Profile, dilation: float) -> list[tuple[int, tuple[int, ...]]]:
    """When after the start of the backward pass (ns) the gradients of which parameters are final; last layer first."""
    first, numbers = 0, []
    for layer in network.layers:
        numbers.append(tuple(range(first, first + len(layer.variables))))
        first += len(layer.variables)
    events, passed = [], 0.0
    for own, times in zip(reversed(numbers), reversed(profile.layers), strict=True):
        if own:
            events.append((round((passed + times.weight_s.median) * dilation * SECOND), tuple(reversed(own))))
        passed += times.backward_s.median
    return events


def sharper_timers() -> None:
    """This thread's sleeps end when they should, not up to 50 us later."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(SLACK_NS), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_TIMERSLACK)")


def _nobody(index: int) -> None:
    """Before `bind`."""
