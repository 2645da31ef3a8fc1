"""Metrics of this paper only: times and ratios of its micro-benchmark, costs per tensor, gains of a mini-batch,
allocations in send buffers, and the sizes of its models."""

from __future__ import annotations

from . import model_sizes, recorded_counts, tensor_transfer, training_gains

METRICS = [
    *tensor_transfer.METRICS,
    *training_gains.METRICS,
    *recorded_counts.METRICS,
    *model_sizes.METRICS,
]
