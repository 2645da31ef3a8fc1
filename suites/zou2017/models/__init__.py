"""Metrics of this paper only: its two lemmas, the memory available to convolutions, and the choice of minibatch and
algorithms as an integer program."""

from __future__ import annotations

from . import lemmas, measured_choices, overhead, parameter_servers

METRICS = [
    *overhead.METRICS,
    *parameter_servers.METRICS,
    *measured_choices.METRICS,
    *lemmas.METRICS,
]
