"""Pipelines: ranks hold stages of the network, and micro-batches follow one another through them in the order of a
schedule (pipelines/schemes/). Replicas of a stage add up their gradients before each update."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

import numpy as np

from scaleproof.pipelines.division import Part
from scaleproof.pipelines.schedule import Pass
from scaleproof.pipelines.schemes import schedule_of
from scaleproof.pipelines.stage_learner import StageLearner, Unit
from scaleproof.pipelines.timing import begun_early
from scaleproof.rank_programs.effects import (
    Await,
    Collective,
    Compute,
    Detach,
    Effect,
    Receive,
    Send,
    Start,
    Started,
    Update,
)
from scaleproof.rank_programs.rank_program import Clock
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies.pipeline_options import PipelineOptions, check, division, loss_ranks, micro_batch, shares
from scaleproof.strategies.replica import Replica

SENDS = 0
"""The lane of activations and their gradients; the next ones are of the parts' gradients."""
AFTER_EACH = "pipedream"
"""The scheme that updates after every micro-batch."""


class Pipeline(Replica):
    """One rank. In a scheme without a flush its passes are those of all steps in one order, and a step ends with the
    last backward pass of its micro-batches."""

    def __init__(self, case: TrainCase, rank: int, clock: Clock, learner: StageLearner, seed: int) -> None:
        super().__init__(case, rank, clock, learner, seed)  # type: ignore[arg-type]
        self.stages, self.options = learner, case.options_of(PipelineOptions)
        self.division = division(case)
        self.parts = {part.pipeline: part for part in self.division.parts(rank)}
        self.unit = self.division.schedule.unit
        self.units_of_step = int(self.options.micro_batches / self.unit)
        self.samples = int(case.batch * self.unit)
        self.updates = 0
        self.on_their_way: dict[int, Unit] = {}
        """Units between their forward and backward pass, by number."""
        self.losses: list[float] = []
        self.most = 0
        """Units whose activations the rank has held at one time in this step."""

    def groups(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """See RankProgram: the ranks that hold a stage."""
        holders = {stage: self.division.holders(stage) for stage in range(len(self.division.stages))}
        return {f"stage{stage}": (ranks,) for stage, ranks in holders.items() if len(ranks) > 1}

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        if not self.division.schedule.flush:
            yield from self._without_flush()
            return
        order = self.division.order(self.rank)
        last_of = {each.pipeline: place for place, each in enumerate(order)}
        early = begun_early(self.options.gradient_sync, self.division.schedule, self.division.worker(self.rank))
        for step in self.steps():
            started = dict[int, Started]()
            for place, each in enumerate(order):
                yield from self._pass(each, step)
                if last_of[each.pipeline] == place and each.pipeline in early:
                    started |= yield from self._start_sync([self.parts[each.pipeline]])
            yield from self._finish_sync(started)
            yield Update()
            self._note_step()

    def _without_flush(self) -> Generator[Effect, Any, None]:
        order = self._all_passes()
        self.stages.keep_version(0)
        for step in self.steps():
            backward = 0
            while backward < self.options.micro_batches:
                each = next(order)
                yield from self._pass(each, each.units[0] // self.options.micro_batches)
                if each.direction == "forward":
                    continue
                backward += 1
                if self.options.scheme == AFTER_EACH or backward == self.options.micro_batches:
                    yield from self._finish_sync({})
                    yield Update()
                    self.updates += 1
                    self.stages.keep_version(self.updates)
                    self.stages.forget_versions(self._oldest(step))
            self._note_step()

    def _all_passes(self) -> Iterator[Pass]:
        """Of all steps."""
        steps = self.case.warmup + self.case.steps
        options = self.options
        whole = schedule_of(options.scheme, options.stages, options.micro_batches * steps, options.pairs)
        return iter(whole.orders[self.division.worker(self.rank)])

    def _version(self, step: int) -> int | None:
        """Of the parameters for a forward pass."""
        if self.division.schedule.flush:
            return None
        return self.updates if self.options.scheme == AFTER_EACH else max(step - 1, 0)

    def _oldest(self, step: int) -> int:
        """The oldest version that is still needed."""
        if self.options.scheme != AFTER_EACH:
            return step
        return min([self.updates, *(unit.version or 0 for unit in self.on_their_way.values())])

    def _pass(self, each: Pass, step: int) -> Generator[Effect, Any, None]:
        forward = each.direction == "forward"
        part, towards = self.parts[each.pipeline], 1 if forward else -1
        value: np.ndarray | None = None
        if 0 <= each.stage - towards < self.options.stages:
            arrived = yield Receive(self._rank(each, -towards), _tag(each), "in a pipeline")
            value = arrived.value
        work = partial(self._forward if forward else self._backward, part, each, step, value)
        result = yield Compute(self._seconds(part, each), work, each.direction, each.units[0])
        if result is not None and 0 <= each.stage + towards < self.options.stages:
            yield Detach(Send(self._rank(each, towards), result, _tag(each)), SENDS)

    def _rank(self, each: Pass, away: int) -> int:
        """Who holds a stage beside that of a pass."""
        return self.division.rank_of(self.division.group(self.rank), each.pipeline, each.stage + away)

    def _forward(self, part: Part, each: Pass, step: int, value: np.ndarray | None) -> np.ndarray:
        inputs = [None] * len(each.units) if value is None else np.split(value, len(each.units))
        outputs = []
        for number, own in zip(each.units, inputs, strict=True):
            begin = number % self.units_of_step * self.samples
            unit = Unit(number, step, slice(begin, begin + self.samples), self._version(step))
            self.on_their_way[number] = unit
            self.most = max(self.most, len(self.on_their_way))
            outputs.append(self.stages.forward(part, unit, own).reshape(-1))
        if part.stage == self.options.stages - 1:
            self.losses += [float(loss[0]) for loss in outputs]
        return outputs[0] if len(outputs) == 1 else np.concatenate(outputs)

    def _backward(self, part: Part, each: Pass, step: int, value: np.ndarray | None) -> np.ndarray | None:
        gradients = [None] * len(each.units) if value is None else np.split(value, len(each.units))
        found = []
        for number, own in zip(each.units, gradients, strict=True):
            result = self.stages.backward(part, self.on_their_way.pop(number), own)
            if result is not None:
                found.append(result.reshape(-1))
        return np.concatenate(found) if len(found) > 1 else found[0] if found else None

    def _seconds(self, part: Part, each: Pass) -> float:
        """Of a pass where that is replayed or simulated."""
        whole = float(self.unit) * len(each.units)
        forward, backward = self.stages.seconds(part)
        if each.direction == "forward":
            return forward * whole
        return (backward + (forward if self.options.activations == "recomputed" else 0.0)) * whole

    def _start_sync(self, parts: list[Part]) -> Generator[Effect, Any, dict[int, Started]]:
        started = {}
        for part in parts:
            if len(self.division.holders(part.stage)) > 1:
                call = Collective("all_reduce", self.stages.exchanged(part), group=f"stage{part.stage}")
                started[part.pipeline] = yield Start(call, SENDS + 1 + list(self.parts).index(part.pipeline))
        return started

    def _finish_sync(self, started: dict[int, Started]) -> Generator[Effect, Any, None]:
        """Begins what is not begun, and waits for all."""
        left = [part for part in self.parts.values() if part.pipeline not in started]
        if self.options.gradient_sync == "late":
            for part in sorted(left, key=lambda each: each.stage):
                for call in (yield from self._start_sync([part])).values():
                    yield Await(call, "all_reduce", self.stages.exchanged(part).nbytes)
            return
        started = started | (yield from self._start_sync(left))
        for pipeline, call in started.items():
            yield Await(call, "all_reduce", self.stages.exchanged(self.parts[pipeline]).nbytes)

    def _note_step(self) -> None:
        self.note("activations", self.most * float(self.unit))
        self.most = len(self.on_their_way)
        if self.losses:
            self.note("loss", float(np.mean(self.losses)))
            self.losses.clear()


def _tag(each: Pass) -> int:
    """Of the message that a pass needs, and of the one that it sends on."""
    return 2 * each.units[0] + (each.direction == "backward")


PLUGIN = StrategyPlugin(
    name="pipeline",
    summary="ranks hold stages of the network; micro-batches follow one another through them",
    implementation=Pipeline,
    options=PipelineOptions,
    check=check,
    collective_calls=False,
    rank_program=ReplicaTraits(
        pace="lockstep",
        end="equal",
        evaluated="stages",
        shares=shares,
        batch=micro_batch,
        loss_ranks=loss_ranks,
        division=division,
    ),
    tags=synchronous_tags("MP+DP", "pipeline"),
)
