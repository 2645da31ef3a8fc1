"""A fully connected layer of which a rank has a part, and the data that a network of such layers is trained with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from suite_programs.moves import Region

from scaleproof.frontiers.layout import Layout
from scaleproof.frontiers.operators import Way

STRIP = 64
"""Rows that are drawn at a time: a rank never holds more of the whole than a strip."""
INPUTS, TARGETS, WEIGHTS = range(3)
"""What is drawn."""


def ways_of(text: str) -> list[Way]:
    """`2x1x2-4x1x1`: samples, outputs, inputs of each layer."""
    return [Way(*(int(part) for part in layer.split("x"))) for layer in text.split("-")]


@dataclass(frozen=True, slots=True)
class Task:
    """Sizes of a network's layers, samples of a step, and what its data are drawn from."""

    features: tuple[int, ...]
    batch: int
    seed: int

    def whole(self, features: int) -> Region:
        """All of an array of samples and features."""
        return Region((0, self.batch), (0, features))

    def inputs(self, step: int, part: Region) -> np.ndarray:
        """A part of a step's inputs."""
        return self._drawn((INPUTS, step), part, self.features[0])

    def targets(self, step: int, part: Region) -> np.ndarray:
        """A part of what the outputs should be."""
        return self._drawn((TARGETS, step), part, self.features[-1])

    def weights(self, number: int, part: Region) -> np.ndarray:
        """A part of a layer's first weights."""
        inputs = self.features[number]
        drawn = self._drawn((WEIGHTS, number), part, inputs)
        drawn *= np.float32((2 / inputs) ** 0.5)
        return drawn

    def _drawn(self, key: tuple[int, int], part: Region, width: int) -> np.ndarray:
        """Normal values, float32. Each strip of rows has numbers of its own, so that all ranks have the same."""
        result = np.empty(part.shape, np.float32)
        for strip, rows in _strips(part.rows):
            random = np.random.default_rng([self.seed, *key, strip])
            values = random.standard_normal((STRIP, width), dtype=np.float32)
            high = slice(rows.start - part.rows[0], rows.stop - part.rows[0])
            result[high] = values[rows.start - strip * STRIP : rows.stop - strip * STRIP, slice(*part.columns)]
        return result


def _strips(rows: tuple[int, int]) -> Iterator[tuple[int, slice]]:
    """Numbers of the strips that rows lie in, and which of the rows each has."""
    for strip in range(rows[0] // STRIP, -(-rows[1] // STRIP)):
        yield strip, slice(max(rows[0], strip * STRIP), min(rows[1], (strip + 1) * STRIP))


class Layer:
    """A rank's part of one layer: `weight` float32 (outputs / r, inputs / c), and what it keeps of a step."""

    def __init__(self, task: Task, number: int, way: Way, rank: int, last: bool) -> None:
        self.number, self.way, self.last = number, way, last
        self.inputs, self.outputs = task.features[number], task.features[number + 1]
        self.reads, self.writes = Layout(way.data, way.columns), Layout(way.data, way.rows, way.columns)
        row, column = rank // way.columns % way.rows, rank % way.columns
        high, wide = self.outputs // way.rows, self.inputs // way.columns
        part = Region((row * high, (row + 1) * high), (column * wide, (column + 1) * wide))
        self.weight = task.weights(number, part)
        self.gradient, self.velocity = (np.full_like(self.weight, 0) for _ in range(2))  # written: they take memory
        self.input: np.ndarray | None = None
        self.output: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        """Of what is kept between steps."""
        return self.weight.nbytes + self.gradient.nbytes + self.velocity.nbytes

    def group(self, kind: str) -> str:
        """Of ranks that add something up: `outputs` (over parts of inputs), `inputs` (over parts of outputs), `weights`
        (over parts of samples)."""
        return f"{kind}{self.number}"

    def groups(self, ranks: int) -> dict[str, tuple[tuple[int, ...], ...]]:
        """By name; those of one rank are left out."""
        way, found = self.way, {}
        cube = np.arange(ranks).reshape(way.data, way.rows, way.columns)
        for kind, axis in (("weights", 0), ("inputs", 1), ("outputs", 2)):
            if cube.shape[axis] > 1:
                parts = np.moveaxis(cube, axis, -1).reshape(-1, cube.shape[axis])
                found[self.group(kind)] = tuple(tuple(int(rank) for rank in part) for part in parts)
        return found

    def differentiate(self, gradient: np.ndarray) -> None:
        """The gradient of the weights, from that of the outputs."""
        assert self.input is not None
        np.matmul(gradient.T, self.input, out=self.gradient)

    def update(self, rate: np.float32, momentum: np.float32) -> None:
        """A step of the optimiser, without further memory."""
        self.velocity *= momentum
        self.velocity += self.gradient
        np.multiply(self.velocity, rate, out=self.gradient)
        self.weight -= self.gradient


def whole_layers(task: Task) -> list[Layer]:
    """Those of one process."""
    count = len(task.features) - 1
    return [Layer(task, number, Way(1, 1, 1), 0, last=number == count - 1) for number in range(count)]
