"""What a worker of a pipeline holds in memory: weights with their gradients and what Adam keeps, more versions of
weights where a scheme has them, and activations of micro-batches between their two passes.

Activations of a transformer's layer in float32 follow Korthikanti et al. 2022 (section 4.1, equation 1), who count
bytes of float16: a mask takes 1 byte a value, all else twice as much here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from scaleproof.pipelines.schedule import Schedule
from scaleproof.workloads.layers import LayerSpec
from scaleproof.workloads.networks import Layer, Network
from scaleproof.workloads.transformer_layers import Attention, FeedForward, LayerNorm

ITEM = 4
"""Bytes of a float32."""
STATE = 4 * ITEM
"""Bytes of a parameter: its value, its gradient and two moments of Adam."""
ATTENTION, OF_PAIRS, FEED_FORWARD, NORM = 21, 9, 37, 4
"""Bytes of a value of a position, of a pair of positions in a head, and of a position in the other layers: 11 of 5 and
19 in float16 there, of which 1, 1 and 1 are masks, and 2 of each normalisation."""


def _attention(layer: Layer) -> float:
    assert isinstance(layer.spec, Attention)
    positions, features = layer.output_shape
    return ATTENTION * positions * features + OF_PAIRS * layer.spec.heads * positions**2


_KEPT: Mapping[type[LayerSpec], Callable[[Layer], float]] = {
    Attention: _attention,
    FeedForward: lambda layer: FEED_FORWARD * prod(layer.output_shape),
    LayerNorm: lambda layer: NORM * prod(layer.output_shape),
}


def kept_bytes(layer: Layer) -> float:
    """Of a sample, between its forward and its backward pass; of layers that are no transformer's: their output."""
    count = _KEPT.get(type(layer.spec))
    if count is not None:
        return count(layer)
    return float(ITEM * prod(layer.output_shape)) if layer.variables else 0.0


@dataclass(frozen=True, slots=True)
class StageBytes:
    """Of each stage: parameters, bytes of activations of a micro-batch, and bytes of its input."""

    parameters: tuple[int, ...]
    activations: tuple[float, ...]
    inputs: tuple[float, ...]

    @classmethod
    def of(cls, stages: Sequence[Network], samples: int) -> StageBytes:
        """Of a network's stages and a micro-batch of so many samples."""
        return cls(
            tuple(stage.parameters for stage in stages),
            tuple(samples * sum(map(kept_bytes, stage.layers)) for stage in stages),
            tuple(float(ITEM * samples * prod(stage.input_shape)) for stage in stages),
        )


def peak_bytes(schedule: Schedule, stages: StageBytes, recompute: bool = False) -> float:
    """The most that any worker holds. `recompute`: of a micro-batch under way only the stage's input, and all of one
    while its backward pass runs."""
    return max(_of_worker(schedule, worker, stages, recompute) for worker in range(len(schedule.orders)))


def _of_worker(schedule: Schedule, worker: int, stages: StageBytes, recompute: bool) -> float:
    held = [stage for _, stage in schedule.held(worker)]
    weights = sum(stages.parameters[stage] * (STATE + ITEM * _more_versions(schedule, stage)) for stage in held)
    kept = stages.inputs if recompute else stages.activations
    now = most = 0.0
    for each in schedule.orders[worker]:
        change = len(each.units) * float(schedule.unit) * kept[each.stage]
        if each.direction == "forward":
            now += change
            most = max(most, now)
        else:
            most = max(most, now + (stages.activations[each.stage] if recompute else 0.0))
            now -= change
    return weights + most


def _more_versions(schedule: Schedule, stage: int) -> int:
    """Of a stage's weights, beside the newest one (Narayanan et al. 2019 and 2021)."""
    if schedule.scheme == "pipedream":
        return schedule.stages - stage - 1
    return int(schedule.scheme == "pipedream_2bw")
