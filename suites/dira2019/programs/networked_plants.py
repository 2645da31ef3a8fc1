"""Plants behind shared channels that fade with memory, and the LQR that knows how often its packets arrive.

A plant: x' = a x - u + w with w standard normal, u = K x where its packet arrives, else 0. Stage cost x^2 + weight u^2.
A channel of a plant is good or bad (Gilbert 1960, Elliott 1963); a packet arrives where it is good. States are arrays
(worlds, plants), channel states (worlds, plants, channels): so many worlds run beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from scaleproof.spec.errors import SpecError

Array = np.ndarray
Policy = Callable[[int, Array, Array], Array]
"""From the step, the states, and the channel states as last seen, to the channel of each plant (worlds, plants); -1:
none."""
RICCATI_STEPS = 200
"""The horizon of the LQR. Plants that lose too many packets have no finite cost over an infinite one."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a case says of its plants and channels. `stay`: probability that a good channel stays good; `good`: share of
    time in which a channel is good; `clip`: largest |x|; `weight`: of u^2 beside x^2."""

    plants: int
    channels: int
    slowest: float
    fastest: float
    stay: float
    good: float
    weight: float
    clip: float

    def __post_init__(self) -> None:
        if not 1 <= self.channels <= self.plants:
            raise SpecError(
                f"options.channels: {self.channels} channels for {self.plants} plants; give 1 to {self.plants}"
            )
        if not 0 < self.good <= 1 or not 0 <= self.stay <= 1:
            raise SpecError(f"options.stay, options.good: {self.stay:g}, {self.good:g} are no probabilities")
        if not 0 <= self.recovery <= 1:
            least = f"channels that are good {self.good:g} of the time; least {2 - 1 / self.good:g}"
            raise SpecError(f"options.stay: {self.stay:g} is too small for {least}")
        if not 0 <= self.slowest <= self.fastest or self.weight < 0 or self.clip <= 0:
            raise SpecError("options: 0 <= slowest <= fastest, weight >= 0 and clip > 0 are needed")

    @property
    def recovery(self) -> float:
        """Probability that a bad channel becomes good, so that channels are good for the share `good` of the time."""
        return self.good if self.good == 1 else self.good / (1 - self.good) * (1 - self.stay)

    def factors(self, seed: int) -> Array:
        """The `a` of each plant, drawn anew for each seed."""
        return np.random.default_rng([seed, 1]).uniform(self.slowest, self.fastest, self.plants)


@dataclass(frozen=True, slots=True)
class Weather:
    """Random numbers that all policies share: `noise` (steps, worlds, plants), `good` (steps + 1, worlds, plants,
    channels). In step t a policy has seen good[t], and packets travel by good[t + 1]."""

    noise: Array
    good: Array

    @classmethod
    def drawn(cls, setting: Setting, generator: np.random.Generator, steps: int, worlds: int) -> Weather:
        """For so many steps."""
        noise = generator.standard_normal((steps, worlds, setting.plants))
        good = np.empty((steps + 1, worlds, setting.plants, setting.channels), bool)
        good[0] = generator.random(good.shape[1:]) < setting.good
        for step in range(steps):
            good[step + 1] = faded(setting, generator, good[step])
        return cls(noise, good)


def faded(setting: Setting, generator: np.random.Generator, good: Array) -> Array:
    """Channel states one step later."""
    return generator.random(good.shape, np.float32) < np.where(
        good, np.float32(setting.stay), np.float32(setting.recovery)
    )


def gains(factors: Array, arrivals: Array | float, weight: float) -> Array:
    """K of each plant if its packets arrive with these probabilities, independently (Schenato et al. 2007, with
    acknowledgements): P <- 1 + a^2 P - p (a P)^2 / (weight + P), K = a P / (weight + P)."""
    cost = np.ones_like(factors)
    for _ in range(RICCATI_STEPS):
        cost = np.minimum(1 + factors**2 * cost - arrivals * (factors * cost) ** 2 / (weight + cost), 1e12)
    return factors * cost / (weight + cost)


def moved(setting: Setting, factors: Array, gain: Array, x: Array, arrived: Array, noise: Array) -> tuple[Array, Array]:
    """The next states, and the inputs u that were applied."""
    u = np.where(arrived, gain * x, 0.0)
    return np.clip(factors * x - u + noise, -setting.clip, setting.clip), u


def arrivals_of(channel: Array, good: Array) -> Array:
    """Whether the packet of each plant arrives: `channel` (worlds, plants), -1 where it has none."""
    of_own = np.take_along_axis(good, np.maximum(channel, 0)[..., None], axis=2)[..., 0]
    return of_own & (channel >= 0)


@dataclass(frozen=True, slots=True)
class Course:
    """What a policy did: mean cost of a plant and step, and the share of steps in which each plant's packet arrived."""

    cost: float
    arrived: Array


def followed(setting: Setting, factors: Array, gain: Array, policy: Policy, weather: Weather, settle: int) -> Course:
    """The course of a policy from states of 0; the first `settle` steps do not count."""
    steps, worlds, _ = weather.noise.shape
    x, cost, arrived = np.zeros((worlds, setting.plants)), 0.0, np.zeros(setting.plants)
    for step in range(steps):
        channel = policy(step, x, weather.good[step])
        hit = arrivals_of(channel, weather.good[step + 1])
        after, u = moved(setting, factors, gain, x, hit, weather.noise[step])
        if step >= settle:
            cost += float(np.mean(x * x + setting.weight * u * u))
            arrived += hit.mean(axis=0)
        x = after
    return Course(cost / (steps - settle), arrived / (steps - settle))


def adapted(setting: Setting, factors: Array, policy: Policy, weathers: Sequence[Weather], settle: int) -> Array:
    """Gains for the arrivals that a policy has: policy and controller alternate, once for each weather."""
    gain = gains(factors, np.full(setting.plants, setting.good * setting.channels / setting.plants), setting.weight)
    for weather in weathers:
        gain = gains(factors, followed(setting, factors, gain, policy, weather, settle).arrived, setting.weight)
    return gain
