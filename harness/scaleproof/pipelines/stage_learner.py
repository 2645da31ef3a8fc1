"""The stages of one rank: with their mathematics or, where compute is replayed or only simulated, their sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Protocol

import numpy as np

from scaleproof.pipelines.division import Division, Part
from scaleproof.spec.case import TrainCase
from scaleproof.spec.emulated import shrunk
from scaleproof.spec.plugins import loaded
from scaleproof.workloads.data import Batch, Data, initial_parameters
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import Profile
from scaleproof.workloads.stage_contract import StageModel

StageTimes = Mapping[int, tuple[float, float]]
"""Seconds of a stage's passes of a micro-batch, forward and backward, undilated; empty: they are computed."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Samples that pass a stage together. `number`: in its iteration; `step`: the iteration; `rows`: of the samples of
    its group; `version`: of the parameters, where a rank keeps several."""

    number: int
    step: int
    rows: slice
    version: int | None = None


class StageLearner(Protocol):
    """All stages of a rank. `parameters`, `gradient`: float32 (n,), of all its parts one after the other."""

    parameters: np.ndarray
    gradient: np.ndarray
    share: float
    """Of the network's parameters."""

    def forward(self, part: Part, unit: Unit, inputs: np.ndarray | None) -> np.ndarray:
        """Outputs (samples, ...); of the last stage the loss, (1,). None: the first stage takes the samples."""

    def backward(self, part: Part, unit: Unit, gradient: np.ndarray | None) -> np.ndarray | None:
        """Gradient of the inputs; None of the first stage. None: the last stage has its own."""

    def seconds(self, part: Part) -> tuple[float, float]:
        """Of the passes of a micro-batch, forward and backward, where they are replayed or simulated."""

    def exchanged(self, part: Part) -> np.ndarray:
        """The part's gradient, as ranks add it up."""

    def keep_version(self, number: int) -> None:
        """The parameters as they are now are version `number`."""

    def forget_versions(self, below: int) -> None:
        """Those with a lower number are not used again."""

    def update(self) -> None:
        """SGD with the case's momentum along `gradient`, which begins at 0 again."""


class _Timed:
    """A learner's parts with their times."""

    _times: StageTimes

    def seconds(self, part: Part) -> tuple[float, float]:
        """See StageLearner."""
        return self._times.get(part.stage, (0.0, 0.0))


class RealStages(_Timed):
    """Computes in the case's framework. `scale`: of the mean loss of a unit with so many samples."""

    def __init__(
        self,
        case: TrainCase,
        division: Division,
        rank: int,
        seed: int,
        data: Data,
        *,
        scale: Callable[[int], float],
        recompute: bool,
        times: StageTimes,
    ) -> None:
        self._case, self._division, self._scale, self._times = case, division, scale, times
        self._parts = division.parts(rank)
        self.parameters = _initial(division, self._parts, seed)
        self.gradient, self._velocity = np.zeros_like(self.parameters), np.zeros_like(self.parameters)
        self.share = len(self.parameters) / sum(stage.parameters for stage in division.stages)
        form: Callable[..., StageModel] = loaded(case.plugin("framework").stage)
        self._models = {
            part.pipeline: form(
                part.network,
                self.gradient[part.elements],
                first=part.stage == 0,
                threads=case.threads_per_rank,
                recompute=recompute,
            )
            for part in self._parts
        }
        self._versions: dict[int, np.ndarray] = {}
        self._used: int | None = None
        self._read = lru_cache(2)(data.batch)
        """Units of two iterations are on their way at a time."""
        self._use(self.parameters)

    def _use(self, parameters: np.ndarray) -> None:
        for part in self._parts:
            self._models[part.pipeline].use(parameters[part.elements])

    def forward(self, part: Part, unit: Unit, inputs: np.ndarray | None) -> np.ndarray:
        """See StageLearner."""
        if unit.version != self._used:
            assert unit.version is not None
            self._use(self._versions[unit.version])
            self._used = unit.version
        model = self._models[part.pipeline]
        batch = self._batch(unit) if part.stage == 0 or part.stage == len(self._division.stages) - 1 else None
        if inputs is None:
            assert batch is not None
            inputs = batch.inputs
        inputs = inputs.reshape(-1, *part.network.input_shape)
        if part.stage < len(self._division.stages) - 1:
            return model.forward(unit.number, inputs)
        assert batch is not None
        loss = model.loss(unit.number, inputs, batch.labels, self._scale(len(inputs)))
        return np.array([loss], np.float32)

    def _batch(self, unit: Unit) -> Batch:
        whole = self._read(unit.step)
        return Batch(whole.inputs[unit.rows], whole.labels[unit.rows])

    def backward(self, part: Part, unit: Unit, gradient: np.ndarray | None) -> np.ndarray | None:
        """See StageLearner."""
        if gradient is not None:
            gradient = gradient.reshape(-1, *part.network.layers[-1].output_shape)
        return self._models[part.pipeline].backward(unit.number, gradient)

    def exchanged(self, part: Part) -> np.ndarray:
        """See StageLearner."""
        return self.gradient[part.elements]

    def keep_version(self, number: int) -> None:
        """See StageLearner."""
        self._versions[number] = self.parameters.copy()

    def forget_versions(self, below: int) -> None:
        """See StageLearner."""
        self._versions = {number: kept for number, kept in self._versions.items() if number >= below}

    def update(self) -> None:
        """See StageLearner."""
        np.multiply(self._velocity, np.float32(self._case.momentum), out=self._velocity)
        self._velocity += self.gradient
        np.multiply(self._velocity, np.float32(self._case.learning_rate), out=self.gradient)
        self.parameters -= self.gradient
        self.gradient.fill(0)


class SizedStages(_Timed):
    """Moves arrays of the right sizes, `shrink` times smaller, without values."""

    def __init__(self, case: TrainCase, division: Division, rank: int, times: StageTimes) -> None:
        self._division, self._shrink, self._times = division, case.shrink, times
        elements = sum(part.network.parameters for part in division.parts(rank))
        self._moved: dict[int, np.ndarray] = {}
        """Activations by their elements: nobody changes them."""
        self._exchanged = {
            part.pipeline: np.zeros(shrunk(part.network.parameters, case.shrink), np.float32)
            for part in division.parts(rank)
        }
        self.parameters = np.zeros(0, np.float32)
        self.gradient = self.parameters
        self.share = elements / sum(stage.parameters for stage in division.stages)

    def forward(self, part: Part, unit: Unit, inputs: np.ndarray | None) -> np.ndarray:
        """See StageLearner."""
        last = part.stage == len(self._division.stages) - 1
        return np.array([math.nan], np.float32) if last else self._sized(unit, part.network.layers[-1].output_shape)

    def backward(self, part: Part, unit: Unit, gradient: np.ndarray | None) -> np.ndarray | None:
        """See StageLearner."""
        return None if part.stage == 0 else self._sized(unit, part.network.input_shape)

    def _sized(self, unit: Unit, shape: Sequence[int]) -> np.ndarray:
        samples = unit.rows.stop - unit.rows.start
        elements = shrunk(samples * prod(shape), self._shrink)
        return self._moved.setdefault(elements, np.zeros(elements, np.float32))

    def exchanged(self, part: Part) -> np.ndarray:
        """See StageLearner."""
        return self._exchanged[part.pipeline]

    def keep_version(self, number: int) -> None:
        """See StageLearner."""

    def forget_versions(self, below: int) -> None:
        """See StageLearner."""

    def update(self) -> None:
        """See StageLearner."""


def _initial(division: Division, parts: Sequence[Part], seed: int) -> np.ndarray:
    """Of the parts of a rank, from those of the whole network."""
    whole = [np.concatenate([value.ravel() for value in values]) for values in _by_stage(division, seed)]
    return np.concatenate([whole[part.stage] for part in parts])


def _by_stage(division: Division, seed: int) -> list[list[np.ndarray]]:
    first = division.stages[0]
    layers = tuple(layer for stage in division.stages for layer in stage.layers)
    values = initial_parameters(Network(first.name, first.input_shape, layers, first.activation), seed)
    found, begin = [], 0
    for stage in division.stages:
        count = len(stage.parameter_shapes)
        found.append(values[begin : begin + count])
        begin += count
    return found


def times_of(division: Division, profile: Profile) -> StageTimes:
    """From the times of the network's layers for a micro-batch."""
    layers = {layer.name: layer for layer in profile.layers}
    return {
        number: (
            sum(layers[layer.name].forward_s.median for layer in stage.layers),
            sum(layers[layer.name].backward_s.median for layer in stage.layers),
        )
        for number, stage in enumerate(division.stages)
    }
