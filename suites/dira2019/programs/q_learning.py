"""Q-learning beside the design of the controller (DQN: Mnih et al. 2015; double: van Hasselt et al. 2016). Many worlds
run beside each other; the gains follow the arrivals that the scheduler has."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from suite_programs.networked_plants import Array, Policy, Setting
from suite_programs.q_networks import copied, values
from suite_programs.schedulers import Batch, Flat, Iterative, Lesson
from suite_programs.training_worlds import Shown, View, Worlds

from scaleproof.frameworks.torch.adam import Adam

TARGET = 0.02
"""Share by which the target network follows in each update."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a training may use: time steps of `worlds` worlds, updates in each, samples of an update, and how much is
    remembered (time steps of all worlds). A training of fewer steps forgets nothing."""

    steps: int
    worlds: int
    updates: int
    batch: int
    rate: float
    discount: float
    remembered: int = 500
    least_curious: float = 0.05


class Memory:
    """The last time steps of all worlds."""

    def __init__(self, setting: Setting, budget: Budget) -> None:
        room, shape = budget.remembered, (budget.worlds, setting.plants)
        self.x = np.zeros((room, 2, *shape), np.float32)
        self.seen = np.zeros((room, 2, *shape, setting.channels), bool)
        self.channel = np.zeros((room, *shape), np.int16)
        self.action = np.zeros((room, budget.worlds), np.int64)
        self.reward = np.zeros((room, budget.worlds), np.float32)
        self.written = 0

    def add(self, shown: Shown, channel: Array, action: Array, reward: Array, then: Shown) -> None:
        """One time step of all worlds."""
        at = self.written % len(self.x)
        self.x[at, 0], self.seen[at, 0] = shown
        self.x[at, 1], self.seen[at, 1] = then
        self.channel[at], self.action[at], self.reward[at] = channel, action, reward
        self.written += 1

    def drawn(self, count: int, random: np.random.Generator) -> Batch:
        """So many steps at random."""
        at = random.integers(min(self.written, len(self.x)), size=count)
        world = random.integers(self.reward.shape[1], size=count)
        (x, then), (seen, seen_then) = self.x[at, :, world].swapaxes(0, 1), self.seen[at, :, world].swapaxes(0, 1)
        of = (self.channel[at, world], self.action[at, world], self.reward[at, world])
        return Batch(x, seen, *of, then, seen_then)


class Learner:
    """A scheduler with its network, target network, optimiser and memory. `updates`: steps of the optimiser;
    `rows`: rows that went through a network, both so far."""

    def __init__(self, scheduler: Iterative | Flat, setting: Setting, budget: Budget, view: View, seed: int) -> None:
        self.scheduler, self.budget, self.view = scheduler, budget, view
        self.target = copy.deepcopy(scheduler.network)
        self.optimiser = Adam(scheduler.network.parameters(), budget.rate)
        self.memory, self.random = Memory(setting, budget), np.random.default_rng([seed, 3])
        self.worlds = Worlds(setting, scheduler.factors, budget.worlds, view, self.random)
        self.updates = self.rows = 0

    @property
    def gain(self) -> Array:
        """The controller's gain of each plant."""
        return self.worlds.gain

    def train(self, note: Callable[[float], None]) -> None:
        """Uses the budget. Notes the mean cost of a plant in each time step."""
        budget, shown = self.budget, self.worlds.start()
        for step in range(budget.steps):
            curious = np.full(budget.worlds, max(budget.least_curious, 1 - 2 * step / budget.steps))
            channel, action = self.scheduler.choose(self.scheduler.network, *shown, curious, self.random)
            self.rows += self.scheduler.passes * budget.worlds
            stepped = self.worlds.step(channel)
            self.memory.add(shown, channel, action, -stepped.cost, stepped.then)
            shown = stepped.shown
            for _ in range(budget.updates):
                self.update()
            note(float(stepped.cost.mean()))

    def update(self) -> None:
        """One step of Adam."""
        budget, network = self.budget, self.scheduler.network
        batch = self.memory.drawn(budget.batch, self.random)
        lesson = self.scheduler.lesson(batch, self.random)
        wanted = torch.from_numpy(self.wanted(lesson, batch.reward))
        found = network(torch.from_numpy(lesson.view)).gather(1, torch.from_numpy(lesson.action)[:, None])[:, 0]
        self.optimiser.zero_grad()
        torch.nn.functional.smooth_l1_loss(found, wanted).backward()
        self.optimiser.step()
        copied(network, self.target, TARGET)
        self.updates += 1
        self.rows += 3 * budget.batch

    def wanted(self, lesson: Lesson, reward: Array) -> Array:
        """Targets of double DQN. Within a time step: Q' of the next decision, without reward and discount. At its end:
        r + discount Q'. Rewards are scaled so that Q is a cost of one step."""
        open_to_all = np.where(lesson.taken, -np.inf, values(self.scheduler.network, lesson.then))
        later = values(self.target, lesson.then)[np.arange(len(reward)), open_to_all.argmax(1)]
        discount = self.budget.discount
        found: Array = np.where(lesson.ends, (1 - discount) * reward + discount * later, later)
        return found

    def policy(self) -> Policy:
        """What it has learned, without random choices."""

        def policy(step: int, x: Array, seen: Array) -> Array:
            shown, certain = self.view.of(x, seen), np.zeros(len(x))
            return self.scheduler.choose(self.scheduler.network, *shown, certain, self.random)[0]

        return policy
