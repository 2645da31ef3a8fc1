"""Replayed compute: a rank sleeps for the time that each layer takes in a profile, or burns its core for so long, and
its gradients become ready at the times of the profile.

Sleeps follow a schedule that starts with the pass, so that a late wake-up does not delay the next one. Passes do not
make up for lateness of earlier passes; `late` records how late each pass ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scaleproof.spec.emulated import shrunk
from scaleproof.workloads.data import Batch
from scaleproof.workloads.model_contract import GradientPlacement
from scaleproof.workloads.networks import Network
from scaleproof.workloads.pace import SECOND, Burn, Pace, Sleep
from scaleproof.workloads.replay_schedule import PassEvent, backward_events, forward_events, replayed_exchanges
from scaleproof.workloads.strips import Strip

if TYPE_CHECKING:
    from scaleproof.workloads.profile import Profile


@dataclass(slots=True)
class Lateness:
    """Totals of all passes so far, in ns: how long they should have lasted, and by how much they ended late."""

    passes: int = 0
    planned_ns: int = 0
    late_ns: int = 0
    worst_ns: int = 0


class ReplayModel:
    """A Model that computes nothing: its parameters are zeros, and it has `shrink` times fewer of them than the
    network. `factors`: of each step, by which it lasts longer than the profile says; none: no step does."""

    def __init__(
        self,
        network: Network,
        profile: Profile,
        dilation: float,
        shrink: float,
        *,
        burns: bool = False,
        factors: Iterable[float] = (),
    ) -> None:
        self.pace: Pace = Burn() if burns else Sleep()
        self._factors, self._factor = iter(factors), 1.0
        self._sizes = [shrunk(math.prod(shape), shrink) for _, shape in network.parameter_shapes]
        # The kernel gives zeros no memory until they are written.
        self._values = [np.zeros(size, np.float32) for size in self._sizes]
        exchanges = replayed_exchanges(network, profile.batch, shrink)
        self._forward = forward_events(network, profile, dilation, exchanges)
        self._backward = backward_events(network, profile, dilation, exchanges)
        self._update_ns = profile.update_s.median * dilation * SECOND
        shares = [
            layer.spec.share if isinstance(layer.spec, Strip) else 1.0
            for layer in network.layers
            for _ in layer.variables
        ]
        self._elements = sum(size / share for size, share in zip(self._sizes, shares, strict=True))
        self._stepped = self._sizes
        self._ready: Callable[[int], None] = _nobody
        self.late = Lateness()

    @property
    def sizes(self) -> list[int]:
        """Elements of every parameter."""
        return list(self._sizes)

    def bind(self, gradients: Sequence[np.ndarray], scale: float, ready: Callable[[int], None]) -> None:
        """See Model; gradients are not written."""
        self._ready = ready

    def forward(self, batch: Batch) -> float:
        """See Model; there is no loss. A step begins."""
        self._factor = next(self._factors, 1.0)
        self._end = self._perform(self._forward, self.pace.now())
        return math.nan

    def backward(self) -> None:
        """See Model; continues the schedule of the forward pass."""
        self._perform(self._backward, self._end)

    def _perform(self, events: Sequence[PassEvent], start: int) -> int:
        """Lets the time of a pass go by; returns when it should end. The schedule starts anew after every exchange."""
        for event in events:
            due_ns = round(event.due_ns * self._factor)
            self.pace.wait_until(start + due_ns)
            for index in event.parameters:
                self._ready(index)
            if event.last:
                self._record_lateness(start + due_ns, due_ns)
                start += due_ns
            if event.exchange is not None:
                event.exchange()
                start = self.pace.now()
        return start

    def update(self, only: Sequence[int] | None = None) -> None:
        """See Model; takes time in proportion to the share of the network's elements that is updated."""
        stepped = self._stepped if only is None else [self._stepped[index] for index in only]
        whole_ns = self._update_ns * self._factor
        self.pace.wait_until(self.pace.now() + round(whole_ns * sum(stepped) / self._elements))

    def step_pieces(self, values: Sequence[np.ndarray], gradients: Sequence[np.ndarray]) -> None:
        """See PiecewiseModel."""
        self._stepped = [piece.size for piece in values]

    def use_memory(self, memory: Sequence[np.ndarray], placement: GradientPlacement | None = None) -> bool:
        """See Model."""
        self._values = list(memory)
        return True

    def values(self) -> list[np.ndarray]:
        """See Model; flat."""
        return self._values

    def load(self, values: Sequence[np.ndarray]) -> None:
        """See Model; the values are ignored."""

    def flat_values(self) -> list[np.ndarray]:
        """See Model."""
        return self._values

    def load_flat(self, values: Sequence[np.ndarray]) -> None:
        """See Model; the values are ignored."""

    def accuracy(self, batch: Batch, reference: Batch | None = None) -> float:
        """See Model; not a number, since nothing was learned."""
        return math.nan

    def _record_lateness(self, due_ns: int, planned_ns: int) -> None:
        behind = max(0, self.pace.now() - due_ns)
        self.late.passes += 1
        self.late.planned_ns += planned_ns
        self.late.late_ns += behind
        self.late.worst_ns = max(self.late.worst_ns, behind)


class NoData:
    """Empty data for replayed compute."""

    test = reference = Batch(np.empty(0, np.float32), np.empty(0, np.int64))

    def batch(self, step: int) -> Batch:
        """No samples."""
        return self.test


def _nobody(index: int) -> None:
    """Before `bind`."""
