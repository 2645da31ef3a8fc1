"""Schedulers that learn Q: iterative ones give a channel away at a time, flat ones choose a whole schedule."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from suite_programs.action_space import outputs
from suite_programs.networked_plants import Array, Setting
from suite_programs.policies import by_urgency, matched, placed
from suite_programs.q_networks import SEEN_OF_PLANT, Built, Plain, Shared, has_channel, of_plants, of_whole, values
from torch import nn

BOOTSTRAPS = ("sub_step", "step")
"""What the target of a sub-step goes on with: the best value of the next sub-step, or the cost of its own time step."""


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


@dataclass(frozen=True, slots=True)
class Lesson:
    """Decisions to learn from: views, what was chosen, views at the next decision, which of its actions are taken
    (rows, outputs), and whether the decision ended its time step."""

    view: Array
    action: Array
    then: Array
    taken: Array
    ends: Array


class Iterative:
    """Sub-step m gives channel m to a plant that has none. It has no reward, and what follows it is certain; so its
    value is the best one of the next sub-step. The last one has the reward of the time step."""

    def __init__(self, scheduler: str, setting: Setting, factors: Array, hidden: int, bootstrap: str) -> None:
        self.setting, self.factors, self.by_sub_step = setting, factors, bootstrap == "sub_step"
        self.passes = setting.channels
        inputs = setting.plants * SEEN_OF_PLANT
        self.network: Plain | Shared = (
            Shared(hidden, setting.plants) if scheduler == "shared" else Plain(inputs, hidden, setting.plants)
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

    def lesson(self, batch: Batch, random: np.random.Generator) -> Lesson:
        """One random sub-step of each remembered step, and the plants that got a channel then. After the last one
        comes the first of the next time step."""
        place = random.integers(self.setting.channels, size=len(batch.x))
        view = of_plants(self.factors, batch.x, batch.seen, batch.channel, place)
        action = (batch.channel == place[:, None]).argmax(1)
        ends = (place == self.setting.channels - 1) | (not self.by_sub_step)
        following = np.where(ends, 0, place + 1)
        x = np.where(ends[:, None], batch.next_x, batch.x)
        seen = np.where(ends[:, None, None], batch.next_seen, batch.seen)
        then = of_plants(self.factors, x, seen, batch.channel, following)
        return Lesson(view, action, then, has_channel(batch.channel, following), ends)


class Flat:
    """One output for each schedule: a set of plants, which take good channels in the order of their urgency, or plants
    with their channels."""

    def __init__(self, scheduler: str, setting: Setting, factors: Array, hidden: int) -> None:
        self.setting, self.factors, self.ordered = setting, factors, scheduler == "flat_ordered"
        self.passes, count = 1, outputs(scheduler, setting.plants, setting.channels)
        make = itertools.permutations if self.ordered else itertools.combinations
        self.schedules = np.fromiter(
            itertools.chain.from_iterable(make(range(setting.plants), setting.channels)), np.int16
        ).reshape(count, setting.channels)
        self.network: Plain | Built = Plain(setting.plants * (1 + setting.channels), hidden, count)

    def choose(
        self, network: nn.Module, x: Array, seen: Array, curious: Array, random: np.random.Generator
    ) -> tuple[Array, Array]:
        """The channel of each plant, and the number of the schedule."""
        worlds = len(x)
        action = values(network, of_whole(self.factors, x, seen)).argmax(1)
        lucky = random.random(worlds) < curious
        action = np.where(lucky, random.integers(len(self.schedules), size=worlds), action)
        return self.given(action, x, seen), action

    def given(self, action: Array, x: Array, seen: Array) -> Array:
        """The channel of each plant in these schedules (worlds). Of a set of plants each takes the first free channel
        that was good, as the heuristic's do: the network does not learn that."""
        plants = self.schedules[action].astype(np.int64)
        if self.ordered:
            return placed(plants, x.shape[1])
        order = np.take_along_axis(
            plants, by_urgency(self.factors[plants], np.take_along_axis(x, plants, axis=1)), axis=1
        )
        return matched(order, seen)

    def lesson(self, batch: Batch, random: np.random.Generator) -> Lesson:
        """The remembered steps, and the schedules that were chosen."""
        rows = len(batch.x)
        view = of_whole(self.factors, batch.x, batch.seen)
        then = of_whole(self.factors, batch.next_x, batch.next_seen)
        return Lesson(view, batch.action, then, np.zeros((rows, 1), bool), np.ones(rows, bool))
