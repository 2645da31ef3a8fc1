"""Passes over the images and decimals of the weights, without an engine: the first layer with one step per epoch, with
weights that are cut between steps, and with mini-batches until they are as far as one step per epoch is at its end."""

from __future__ import annotations

import numpy as np
from suite_programs.inputs import digits, pixels_in_range
from suite_programs.rbm import Task, gradient_of, reconstruction_error, train_serially

from scaleproof.collectives.group import open_group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import timed_region
from scaleproof.spec.case import OwnCase

PRELOAD = ["suite_programs.inputs"]
OFTEN = 4
"""How often in a pass over the images the mini-batches are compared."""


def passes_to(task: Task, images: np.ndarray, minibatch: int, error: float) -> float:
    """Passes after which mini-batches reconstruct as well as this, at most `task.epochs`."""
    weights, shuffled = task.initial(0), np.random.default_rng([task.seed, 3])
    batches = max(len(images) // minibatch, 1)
    every = max(batches // OFTEN, 1)
    for epoch in range(task.epochs):
        order = shuffled.permutation(len(images))
        for number, chosen in enumerate(np.array_split(order, batches), 1):
            weights = task.kept(
                weights + gradient_of(task, images[chosen], chosen.tolist(), [weights], epoch) / len(chosen)
            )
            if number % every == 0 and reconstruction_error(images, [weights]) <= error:
                return epoch + number / batches
    return float(task.epochs)


def run(context: RankContext) -> None:
    """Options: `hidden` units; `images`; `decimals` of the weights that are cut; `minibatch`. `iterations`: epochs."""
    case = context.case
    assert isinstance(case, OwnCase)
    of = case.options
    images = digits(int(of["images"]), context.seed)
    context.check("pixels", pixels_in_range(images), "a pixel is not between 0 and 1")
    sizes = images.shape[1], int(of["hidden"])
    exact = Task(sizes, case.iterations, context.seed)
    cut = Task(sizes, case.iterations, context.seed, int(of["decimals"]))
    with timed_region(context, open_group(context)):
        error = reconstruction_error(images, train_serially(exact, images))
        found = {
            "error.exact": error,
            "error.cut": reconstruction_error(images, train_serially(cut, images)),
            "passes": passes_to(exact, images, int(of["minibatch"]), error),
        }
    for event, value in found.items():
        moment = now()
        context.recorder.add(event, 0, moment, moment, 0, value)
