"""Metrics of this paper only: times and ratios of its micro-benchmark, costs per tensor, gains of a mini-batch
and allocations in send buffers."""

from __future__ import annotations

from . import recorded_counts, tensor_transfer, training_gains

METRICS = [
    *tensor_transfer.METRICS,
    *training_gains.METRICS,
    *recorded_counts.METRICS,
]
