"""Plants, channels and controller while a scheduler learns: many worlds beside each other. Our learner and that of a
library step through the same ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from suite_programs.networked_plants import Array, Setting, arrivals_of, faded, gains, moved

CLIP = 10.0
"""Largest |x| while a scheduler learns: the cost of few lost plants would outweigh all others."""
PUSHED = 0.02
"""Probability that a plant is moved to a state between +-CLIP before a step, so that a scheduler learns to serve plants
that are far away, which are rare (exploring starts: Sutton and Barto, section 5.3)."""
REDESIGN = 25
"""Time steps from one design of the gains to the next; arrivals are averaged over about as many."""

Shown = tuple[Array, Array]
"""States (worlds, plants) and channels as last seen (worlds, plants, channels)."""


class View:
    """What a scheduler is shown: states up to +-CLIP, as while it learns, since a network says nothing sensible of
    larger ones; as a control, those of the plants in a random order."""

    def __init__(self, shuffled: bool, random: np.random.Generator) -> None:
        self.shuffled, self.random = shuffled, random

    def of(self, x: Array, seen: Array) -> Shown:
        """States and channels as they are shown."""
        x = np.clip(x, -CLIP, CLIP)
        if not self.shuffled:
            return x, seen
        order = np.argsort(self.random.random(x.shape), axis=1)
        return np.take_along_axis(x, order, axis=1), np.take_along_axis(seen, order[..., None], axis=1)


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a time step led to: the cost of a plant (worlds), what is shown after it, what is shown for the next
    decision, and in which worlds a plant was moved in between (worlds)."""

    cost: Array
    then: Shown
    shown: Shown
    pushed: Array


class Worlds:
    """Plants and channels with a controller that follows the arrivals. `random` is drawn from in each step."""

    def __init__(self, setting: Setting, factors: Array, count: int, view: View, random: np.random.Generator) -> None:
        self.setting, self.factors = replace(setting, clip=min(CLIP, setting.clip)), factors
        self.count, self.view, self.random = count, view, random
        self.arrived = np.full(setting.plants, setting.good * setting.channels / setting.plants)
        self.gain = gains(factors, self.arrived, setting.weight)

    def start(self) -> Shown:
        """States of 0, and channels that are good for their share."""
        shape, self.done = (self.count, self.setting.plants), 0
        self.x, self.seen = np.zeros(shape), self.random.random((*shape, self.setting.channels)) < self.setting.good
        return self.view.of(self.x, self.seen)

    def step(self, channel: Array) -> Stepped:
        """One time step of all worlds; `channel` (worlds, plants), -1 where a plant has none."""
        setting, random = self.setting, self.random
        self.seen = faded(setting, random, self.seen)
        hit = arrivals_of(channel, self.seen)
        x, u = moved(setting, self.factors, self.gain, self.x, hit, random.standard_normal(self.x.shape))
        cost = np.mean(x * x + setting.weight * u * u, axis=1)
        then = self.view.of(x, self.seen)
        pushed: Array = random.random(x.shape) < PUSHED
        self.x = np.where(pushed, random.uniform(-CLIP, CLIP, x.shape), x)
        self._redesign(hit)
        return Stepped(cost, then, self.view.of(self.x, self.seen), np.any(pushed, axis=1))

    def _redesign(self, hit: Array) -> None:
        """Follows the arrivals, and designs the gains for them every so many steps."""
        self.arrived += (hit.mean(axis=0) - self.arrived) / REDESIGN
        self.done += 1
        if self.done % REDESIGN == 0:
            self.gain = gains(self.factors, self.arrived, self.setting.weight)
