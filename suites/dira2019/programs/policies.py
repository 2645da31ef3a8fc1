"""Policies that learn nothing: which plant gets which channel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from suite_programs.networked_plants import Array, Policy, Setting

Make = Callable[[Setting, Array, np.random.Generator], Policy]


def placed(plants: Array, count: int) -> Array:
    """The channel of each of `count` plants (worlds, count), -1 where it has none; the m-th of `plants` (worlds,
    channels) gets channel m."""
    channel = np.full((len(plants), count), -1)
    np.put_along_axis(channel, plants, np.broadcast_to(np.arange(plants.shape[1]), plants.shape), axis=1)
    return channel


def matched(plants: Array, seen: Array) -> Array:
    """The same plants, but each takes the first free channel that was good when last seen, or the first free one."""
    worlds, count, channels = seen.shape
    channel, free, rows = np.full((worlds, count), -1), np.ones((worlds, channels), bool), np.arange(worlds)
    for place in range(channels):
        plant = plants[:, place]
        taken = np.argmax(free * (1 + seen[rows, plant]), axis=1)  # the first of equals
        channel[rows, plant] = taken
        free[rows, taken] = False
    return channel


def by_urgency(factors: Array, x: Array) -> Array:
    """Plants of each world by |a x|, the largest first."""
    return np.argsort(-np.abs(factors * x), axis=1, kind="stable")


def random(setting: Setting, factors: Array, generator: np.random.Generator) -> Policy:
    """Plants drawn at random."""

    def policy(step: int, x: Array, seen: Array) -> Array:
        return placed(np.argsort(generator.random(x.shape), axis=1)[:, : setting.channels], setting.plants)

    return policy


def round_robin(setting: Setting, factors: Array, generator: np.random.Generator) -> Policy:
    """The next M plants in each step."""

    def policy(step: int, x: Array, seen: Array) -> Array:
        plants = (step * setting.channels + np.arange(setting.channels)) % setting.plants
        return placed(np.broadcast_to(plants, (len(x), setting.channels)), setting.plants)

    return policy


def greedy(setting: Setting, factors: Array, generator: np.random.Generator) -> Policy:
    """The M plants with the largest |a x|; it does not look at channels."""
    return lambda step, x, seen: placed(by_urgency(factors, x)[:, : setting.channels], setting.plants)


def heuristic(setting: Setting, factors: Array, generator: np.random.Generator) -> Policy:
    """The iterative heuristic: the plants of `greedy`, each with the first free channel that was good when last
    seen."""
    return lambda step, x, seen: matched(by_urgency(factors, x), seen)


BASELINES: dict[str, Make] = {"random": random, "round_robin": round_robin, "greedy": greedy, "heuristic": heuristic}
