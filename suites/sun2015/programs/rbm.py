"""Greedy layer-wise training of restricted Boltzmann machines by CD-1, as the authors' RBMMapper and driver do it:
biases stay 0, and an epoch is one full-batch step. How the gradients of all images are added up is left to an engine.
(sunkairan/MapReduce-Based-Deep-Learning@ad00e6b; Hinton and Salakhutdinov 2006.)"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

RATE = 0.1
"""The authors' epsilonw."""
SIGMA = 0.1
"""Standard deviation of initial weights."""
_WEIGHTS, _DRAWS = 1, 2
"""Random streams of a seed."""


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Of each element."""
    result: np.ndarray = 1.0 / (1.0 + np.exp(-x))
    return result


@dataclass(frozen=True, slots=True)
class Task:
    """What is trained. `sizes`: units of each layer, inputs first; `epochs`: of each layer; `decimals`: that weights
    keep between two steps, since the driver writes them as text (0: all)."""

    sizes: tuple[int, ...]
    epochs: int
    seed: int
    decimals: int = 0

    @property
    def layers(self) -> range:
        """Numbers of the machines, from 0."""
        return range(len(self.sizes) - 1)

    def initial(self, layer: int) -> np.ndarray:
        """Weights before the first step, (visible, hidden)."""
        shape = self.sizes[layer], self.sizes[layer + 1]
        return self.kept(SIGMA * np.random.default_rng([self.seed, _WEIGHTS, layer]).standard_normal(shape))

    def kept(self, weights: np.ndarray) -> np.ndarray:
        """What is left of weights that went through text."""
        return np.round(weights, self.decimals) if self.decimals else weights

    def draws(self, layer: int, epoch: int, image: int) -> np.ndarray:
        """Uniform numbers that decide the hidden states of an image. They depend on nothing else, so that every
        division of the images gives the same step."""
        return np.random.default_rng([self.seed, _DRAWS, layer, epoch, image]).random(self.sizes[layer + 1])


def propagated(inputs: np.ndarray, below: Sequence[np.ndarray]) -> np.ndarray:
    """Activations above trained layers (PropMapper), here without rounding to 0..255."""
    for weights in below:
        inputs = sigmoid(inputs @ weights)
    return inputs


def gradient(visible: np.ndarray, weights: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """CD-1: 0.1 (v' h0 - v1' h1), summed over the rows of `visible`; (visible, hidden)."""
    hidden = sigmoid(visible @ weights)
    again = sigmoid((draws < hidden) @ weights.T)
    result: np.ndarray = RATE * (visible.T @ hidden - again.T @ sigmoid(again @ weights))
    return result


def gradient_of(
    task: Task, images: np.ndarray, numbers: Sequence[int], weights: Sequence[np.ndarray], epoch: int
) -> np.ndarray:
    """Of the layer above trained ones: `weights` are those of all layers so far, the last one's being trained."""
    layer = len(weights) - 1
    draws = np.array([task.draws(layer, epoch, number) for number in numbers])
    return gradient(propagated(images, weights[:-1]), weights[-1], draws)


Total = Callable[[int, int, Sequence[np.ndarray]], np.ndarray]
"""An engine: from the number of the step, the epoch within the layer and the weights so far to the sum over images."""


def train(task: Task, count: int, total: Total) -> list[np.ndarray]:
    """Weights of all layers after `epochs` steps each on so many images."""
    done: list[np.ndarray] = []
    for layer in task.layers:
        done.append(task.initial(layer))
        for epoch in range(task.epochs):
            added = total(layer * task.epochs + epoch, epoch, done)
            done[-1] = task.kept(done[-1] + added.reshape(done[-1].shape) / count)
    return done


def train_serially(task: Task, images: np.ndarray) -> list[np.ndarray]:
    """The same in this process, on the whole batch at once."""
    numbers = range(len(images))
    return train(task, len(images), lambda _, epoch, weights: gradient_of(task, images, numbers, weights, epoch))


def difference(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> float:
    """Largest distance of a weight from the wanted one, as a share of the largest wanted weight of its layer."""
    pairs = zip(found, wanted, strict=True)
    return max(float(np.abs(ours - theirs).max() / np.abs(theirs).max()) for ours, theirs in pairs)


def reconstruction_error(images: np.ndarray, weights: Sequence[np.ndarray]) -> float:
    """Mean squared distance of a pixel from what comes back through all layers."""
    back = propagated(images, weights)
    for layer in reversed(weights):
        back = sigmoid(back @ layer.T)
    return float(np.mean((back - images) ** 2))
