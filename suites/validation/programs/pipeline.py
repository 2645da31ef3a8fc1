"""A pipeline of two stages: micro-batches go forward one after the other, and their gradients come back (GPipe)."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import Await, Compute, Effect, Receive, Send, Start
from scaleproof.rank_programs.rank_program import RankProgram

RATE = 1e-5


class Pipeline(RankProgram):
    """Stage 0 computes relu(x A), stage 1 the loss |y B|^2 / 2, both with weights that each micro-batch's gradient is
    added to. `compute_ms`: of a stage's forward pass on one micro-batch of `rows` samples; a backward pass takes twice
    as long."""

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        self.count, self.seconds = int(self.case.options["micro_batches"]), float(self.case.options["compute_ms"]) / 1e3
        self.rows = int(self.case.options["rows"])
        self.width = self.case.sizes[0] // 4 // self.rows
        self.weights = weights(self.width, self.rank)
        for step in self.steps():
            yield from self._first(step) if self.rank == 0 else self._second()

    def _first(self, step: int) -> Generator[Effect, Any, None]:
        sent, kept = [], []
        for number in range(self.count):
            inputs, output = yield Compute(self.seconds, partial(self._first_forward, step, number), "forward")
            kept.append((inputs, output))
            sent.append((yield Start(Send(1, output.reshape(-1), number))))
        for number, (inputs, output) in enumerate(kept):
            arrived = (yield Receive(1, number)).value.reshape(self.rows, self.width)
            yield Compute(2 * self.seconds, partial(self._first_backward, inputs, output, arrived), "backward")
        for each in sent:
            yield Await(each)

    def _second(self) -> Generator[Effect, Any, None]:
        sent, kept = [], []
        for number in range(self.count):
            arrived = (yield Receive(0, number)).value.reshape(self.rows, self.width)
            kept.append((arrived, (yield Compute(self.seconds, partial(np.matmul, arrived, self.weights), "forward"))))
        for number, (arrived, loss) in enumerate(kept):
            gradient = yield Compute(2 * self.seconds, partial(self._backward, arrived, loss), "backward")
            sent.append((yield Start(Send(0, gradient.reshape(-1), number))))
        for each in sent:
            yield Await(each)

    def _first_forward(self, step: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        inputs = inputs_of(step, number, self.rows, self.width)
        return inputs, np.maximum(inputs @ self.weights, 0)

    def _first_backward(self, inputs: np.ndarray, output: np.ndarray, arrived: np.ndarray) -> None:
        self._update(inputs, arrived * (output > 0))

    def _backward(self, inputs: np.ndarray, loss: np.ndarray) -> np.ndarray:
        gradient = loss @ self.weights.T
        self._update(inputs, loss)
        return gradient

    def _update(self, inputs: np.ndarray, gradient: np.ndarray) -> None:
        self.weights -= RATE * inputs.T @ gradient

    def checks(self) -> list[tuple[str, bool, str]]:
        """The weights are those of the same steps without a pipeline, to the bit."""
        steps = self.case.warmup + self.case.iterations
        wanted = trained(steps, self.count, self.rows, self.width)[self.rank]
        return [("weights", np.array_equal(self.weights, wanted), f"of stage {self.rank}")]


def weights(width: int, stage: int) -> np.ndarray:
    """The weights that a stage starts with."""
    values: np.ndarray = np.random.default_rng(stage).standard_normal((width, width), np.float32) / np.sqrt(width)
    return values.astype(np.float32)


def inputs_of(step: int, number: int, rows: int, width: int) -> np.ndarray:
    """The samples of a micro-batch."""
    return np.random.default_rng((step, number)).standard_normal((rows, width), np.float32)


def trained(steps: int, count: int, rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The weights of both stages after some steps on one rank. All forward passes of a step see its first weights."""
    first, second = weights(width, 0), weights(width, 1)
    for step in range(steps):
        inputs = [inputs_of(step, number, rows, width) for number in range(count)]
        outputs = [np.maximum(each @ first, 0) for each in inputs]
        losses = [each @ second for each in outputs]
        gradients = []
        for output, loss in zip(outputs, losses, strict=True):
            gradients.append(loss @ second.T)
            second -= RATE * output.T @ loss
        for each, output, gradient in zip(inputs, outputs, gradients, strict=True):
            first -= RATE * each.T @ (gradient * (output > 0))
    return first, second


PROGRAM = Pipeline
