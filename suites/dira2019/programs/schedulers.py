"""Schedulers that learn Q: iterative ones give a channel away at a time, flat ones choose a whole schedule."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from suite_programs.action_space import outputs
from suite_programs.networked_plants import Array, Setting
from suite_programs.policies import by_urgency, matched, placed
from suite_programs.q_networks import SEEN_OF_PLANT, Plain, Shared, of_plants, of_whole, values
from torch import nn


@dataclass(frozen=True, slots=True)
class Batch:
    """Remembered steps: what was seen, what was done, what was paid, and what was seen then."""

    x: Array
    seen: Array
    channel: Array
    action: Array
    reward: Array
    next_x: Array
    next_seen: Array


class Iterative:
    """Sub-step m gives channel m to a plant that has none. Its reward comes with the last sub-step; so the return of
    each sub-step is that of its time step and the best value of the next one."""

    def __init__(self, scheduler: str, setting: Setting, factors: Array, hidden: int) -> None:
        self.setting, self.factors = setting, factors
        self.outputs = outputs(scheduler, setting.plants, setting.channels)
        self.passes = setting.channels
        inputs = setting.plants * SEEN_OF_PLANT
        self.network: nn.Module = (
            Shared(hidden, setting.plants) if scheduler == "shared" else Plain(inputs, hidden, self.outputs)
        )

    def choose(
        self, network: nn.Module, x: Array, seen: Array, curious: Array, random: np.random.Generator
    ) -> tuple[Array, Array]:
        """The channel of each plant, and an action number that iterative schedulers do not use. `curious` (worlds): the
        probability of a random choice in each sub-step."""
        worlds = len(x)
        channel, rows = np.full((worlds, self.setting.plants), -1), np.arange(worlds)
        for place in range(self.setting.channels):
            found = values(network, of_plants(self.factors, x, seen, channel, np.full(worlds, place)))
            lucky = random.random(worlds) < curious
            if lucky.any():
                found = np.where(lucky[:, None], random.random(found.shape), found)
            found[channel >= 0] = -np.inf
            channel[rows, found.argmax(1)] = place
        return channel, np.zeros(worlds, np.int64)

    def learned(self, batch: Batch, random: np.random.Generator) -> tuple[Array, Array]:
        """Views of one random sub-step of each remembered step, and the plants that got a channel then."""
        place = random.integers(self.setting.channels, size=len(batch.x))
        view = of_plants(self.factors, batch.x, batch.seen, batch.channel, place)
        return view, (batch.channel == place[:, None]).argmax(1)

    def first_view(self, x: Array, seen: Array) -> Array:
        """What is seen before the first decision of a step."""
        return of_plants(self.factors, x, seen, np.full(x.shape, -1), np.zeros(len(x), np.int64))


class Flat:
    """One output for each schedule: a set of plants, which take good channels in the order of their urgency, or plants
    with their channels."""

    def __init__(self, scheduler: str, setting: Setting, factors: Array, hidden: int) -> None:
        self.setting, self.factors, self.ordered = setting, factors, scheduler == "flat_ordered"
        self.outputs = outputs(scheduler, setting.plants, setting.channels)
        self.passes = 1
        make = itertools.permutations if self.ordered else itertools.combinations
        self.schedules = np.fromiter(
            itertools.chain.from_iterable(make(range(setting.plants), setting.channels)), np.int16
        ).reshape(self.outputs, setting.channels)
        self.network: nn.Module = Plain(setting.plants * (1 + setting.channels), hidden, self.outputs)

    def choose(
        self, network: nn.Module, x: Array, seen: Array, curious: Array, random: np.random.Generator
    ) -> tuple[Array, Array]:
        """The channel of each plant, and the number of the schedule."""
        worlds = len(x)
        action = values(network, of_whole(self.factors, x, seen)).argmax(1)
        lucky = random.random(worlds) < curious
        action = np.where(lucky, random.integers(self.outputs, size=worlds), action)
        plants = self.schedules[action].astype(np.int64)
        if self.ordered:
            return placed(plants, x.shape[1]), action
        order = np.take_along_axis(
            plants, by_urgency(self.factors[plants], np.take_along_axis(x, plants, axis=1)), axis=1
        )
        return matched(order, seen), action

    def learned(self, batch: Batch, random: np.random.Generator) -> tuple[Array, Array]:
        """Views of the remembered steps, and the schedules that were chosen."""
        return of_whole(self.factors, batch.x, batch.seen), batch.action

    def first_view(self, x: Array, seen: Array) -> Array:
        """What is seen before the decision."""
        return of_whole(self.factors, x, seen)
