"""Trains fully connected layers that are divided over ranks by samples, by outputs and by inputs, each in its own way,
and notes how much memory that took."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from suite_programs.divided_layer import Layer, Task, ways_of, whole_layers
from suite_programs.moves import Region, moved, region
from suite_programs.process_memory import Peak, capped

from scaleproof.frontiers.layout import Layout
from scaleproof.rank_programs.collectives import barrier
from scaleproof.rank_programs.effects import Collective, Compute, Effect, Settle
from scaleproof.rank_programs.rank_program import Clock, RankProgram
from scaleproof.spec.case import OwnCase

MOMENTUM = np.float32(0.9)


class DividedTraining(RankProgram):
    """Options: `features` of all layers, as 784-512-10; `ways`; `batch`; `flops`: FLOP/s of a rank, which decides how
    long its computing takes (with `slept: 1`); `rate`; `alone`: 1 compares the losses with those of one process, 2
    with those of one with half the rate, 0 not; `cap_mib`: of memory that the rank may take, 0: any. The loss is half
    the mean squared distance from targets that are drawn. Where the training does not fit, no step does anything and
    `trained` is 0."""

    def __init__(self, case: OwnCase, rank: int, clock: Clock) -> None:
        super().__init__(case, rank, clock)
        of = case.options
        sizes, ways = [int(each) for each in str(of["features"]).split("-")], ways_of(str(of["ways"]))
        if len(ways) != len(sizes) - 1:
            raise ValueError(f"{len(ways)} ways for {len(sizes) - 1} layers: give one for each")
        self.task = Task(tuple(sizes), int(of["batch"]), int(of.get("seed", 1)))
        self.flops, self.rate = float(of["flops"]), np.float32(of["rate"])
        self._in_process = not case.plugin("fabric").predicted  # else all ranks share one process
        cap = int(of["cap_mib"]) if self._in_process else 0
        self.layers: list[Layer] = []
        with capped(cap) as self.room:
            self.layers = [
                Layer(self.task, number, way, rank, last=number == len(ways) - 1) for number, way in enumerate(ways)
            ]
        self.losses: list[float] = []

    def groups(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """See RankProgram."""
        return {name: parts for layer in self.layers for name, parts in layer.groups(self.world_size).items()}

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        peak = Peak(sum(layer.nbytes for layer in self.layers)) if self._in_process else None
        for step in self.steps():
            if self.room.fits:
                loss = yield from self._step(step)
                self.losses.append(loss)
                self._clock.note("loss", loss)
            yield Settle()
        self._clock.note("trained", float(self.room.fits))
        if peak is not None and self.room.fits:
            self._clock.note("peak_mib", peak.mib())
        yield from barrier(self.rank, self.world_size)
        if self.rank == 0 and self.case.options["alone"]:
            self._clock.note("loss_difference", self._difference_alone())

    def _step(self, step: int) -> Generator[Effect, Any, float]:
        first, final = self.layers[0], self.layers[-1]
        value = self.task.inputs(step, self._part(first.reads, first.inputs))
        for layer, following in zip(self.layers, [*self.layers[1:], None], strict=True):
            value = yield from self._forward(layer, value)
            if following is not None:
                value = yield from self._moved(value, layer.writes, following.reads, layer.outputs, 2 * layer.number)
        loss = yield from self._loss(step, value, final)
        gradient, final.output = value, None
        del value  # the last reference to the outputs, but for `gradient`
        for layer, before in zip(reversed(self.layers), [*reversed(self.layers[:-1]), None], strict=True):
            gradient = yield from self._backward(layer, gradient, wanted=before is not None)
            if before is not None:
                tag = 2 * before.number + 1
                gradient = yield from self._moved(gradient, layer.reads, before.writes, layer.inputs, tag)
        for layer in self.layers:
            layer.update(self.rate, MOMENTUM)
        return loss

    def _loss(self, step: int, value: np.ndarray, final: Layer) -> Generator[Effect, Any, float]:
        """Of the whole batch. The outputs become their gradient."""
        value -= self.task.targets(step, self._part(final.writes, final.outputs))
        share = np.float32(self.task.batch * final.outputs)
        total = np.array([np.vdot(value, value) / 2 / share / final.way.columns], np.float32)
        yield Collective("all_reduce", total, tag=1000)
        value /= share
        return float(total[0])

    def _part(self, layout: Layout, features: int) -> Region:
        return region(layout, self.rank, self.world_size, self.task.batch, features)

    def _moved(
        self, value: np.ndarray, have: Layout, want: Layout, features: int, tag: int
    ) -> Generator[Effect, Any, np.ndarray]:
        return (yield from moved(self.rank, self.world_size, value, have, want, self.task.batch, features, tag))

    def _seconds(self, layer: Layer) -> float:
        return 2 * self.task.batch * layer.inputs * layer.outputs / self.world_size / self.flops

    def _forward(self, layer: Layer, value: np.ndarray) -> Generator[Effect, Any, np.ndarray]:
        layer.input = value
        result: np.ndarray = yield Compute(self._seconds(layer), lambda: value @ layer.weight.T, "forward")
        if layer.way.columns > 1:
            yield Collective("all_reduce", result.reshape(-1), 4 * layer.number, layer.group("outputs"))
        if not layer.last:
            np.maximum(result, 0, out=result)
        layer.output = result
        return result

    def _backward(self, layer: Layer, gradient: np.ndarray, *, wanted: bool) -> Generator[Effect, Any, np.ndarray]:
        """What the pass has used is let go of at once, so that no more is kept than the model of memory says."""
        if layer.output is not None:
            gradient *= layer.output > 0
        layer.output = None
        yield Compute(self._seconds(layer), lambda: layer.differentiate(gradient), "backward")
        layer.input = None
        if layer.way.data > 1:
            yield Collective("all_reduce", layer.gradient.reshape(-1), 4 * layer.number + 1, layer.group("weights"))
        if not wanted:
            return gradient
        result: np.ndarray = yield Compute(self._seconds(layer), lambda: gradient @ layer.weight, "backward")
        if layer.way.rows > 1:
            yield Collective("all_reduce", result.reshape(-1), 4 * layer.number + 2, layer.group("inputs"))
        return result

    def _difference_alone(self) -> float:
        """Largest distance of a loss from that of one process."""
        layers, largest, whole = whole_layers(self.task), 0.0, self.task.whole
        rate = self.rate / np.float32(self.case.options["alone"])
        for step, ours in enumerate(self.losses):
            value = self.task.inputs(step, whole(self.task.features[0]))
            for layer in layers:
                layer.input, value = value, value @ layer.weight.T
                value = layer.output = value if layer.last else np.maximum(value, 0)
            gradient = value - self.task.targets(step, whole(self.task.features[-1]))
            largest = max(largest, abs(float(np.vdot(gradient, gradient)) / 2 / gradient.size - ours))
            gradient /= np.float32(gradient.size)
            for layer in reversed(layers):
                gradient = gradient if layer.last else gradient * (layer.output > 0)
                layer.differentiate(gradient)
                gradient = gradient @ layer.weight
            for layer in layers:
                layer.update(rate, MOMENTUM)
        return largest


PROGRAM = DividedTraining
