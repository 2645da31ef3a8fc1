"""How many samples a scheme trains with until its training loss is at a target."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from scaleproof.claims.learning_curve import LOSS, LearningCurve, divergence, learning_curve
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase
from scaleproof.workloads.datasets.markov_text import SHARES, TOKENS


def _entropy() -> float:
    """Of a token of the text after the one before it, nat."""
    any_token = (1 - sum(SHARES)) / TOKENS
    chances = [share + any_token for share in SHARES] + [any_token] * (TOKENS - len(SHARES))
    return -sum(chance * math.log(chance) for chance in chances)


ENTROPY = _entropy()
"""Least expected loss of any network, nat."""
TARGET = round((math.log(TOKENS) + ENTROPY) / 2, 2)
"""2.60 nat, half way from uniform guesses to the entropy: half of what can be learned is learned."""
WINDOW = 5
"""Steps whose mean is the smoothed loss."""


def samples_to_loss(record: Record, samples: pd.DataFrame) -> float | None:
    """Training samples of all ranks until the smoothed training loss is at most 2.60 nat. A launch in which it never is
    has the words `not reached` with its lowest smoothed loss, or `diverged` with the step.

    samples_to_loss = training samples up to the first step whose smoothed loss is at most 2.60 (suite chimera2021)

    smoothed loss = mean of the training loss over that step and the 4 before it

    2.60 is half way from uniform guesses, ln 32 = 3.47, to the entropy of the text, 1.74, which no network's expected
    loss is below. It follows from the text alone and was set before any curve was looked at. The loss of one minibatch
    is noisy, hence the mean; it makes every scheme 2 steps later. The loss is that of the minibatch before its update:
    where a scheme computes with older weights, it is that of these weights.

    [samples_to_quality](samples_to_quality.md) has the data set's own target, which is a test accuracy.
    """
    curve = _smoothed(record, samples)
    if curve is None or not (reached := np.flatnonzero(curve.values <= TARGET)).size:
        return None
    return float(curve.samples[reached[0]])


def _smoothed(record: Record, samples: pd.DataFrame) -> LearningCurve | None:
    """The training loss, nat, as the mean of WINDOW steps, at the last of them; None with fewer steps."""
    curve = learning_curve(record, samples, LOSS)
    if curve is None or len(curve.values) < WINDOW:
        return None
    means = np.lib.stride_tricks.sliding_window_view(curve.values, WINDOW).mean(axis=1)
    last = slice(WINDOW - 1, None)
    return LearningCurve(curve.steps[last], curve.samples[last], curve.seconds[last], means)


def not_reached(record: Record, samples: pd.DataFrame) -> str | None:
    """What a launch has in place of a number if its smoothed loss never came down to the target."""
    curve = _smoothed(record, samples)
    if curve is None or (curve.values <= TARGET).any():
        return None
    return divergence(record, samples) or f"not reached, best {curve.values.min():.3g} of {TARGET:g}"


def made_up(wanted: Wanted) -> MadeUp:
    """A launch whose smoothed loss is at the target after the nearest possible number of samples: of whole steps, at
    least WINDOW of them."""
    case = wanted.case
    if not isinstance(case, TrainCase) or not math.isfinite(wanted.known):
        raise ImpossibleValue("only a training has samples, and finitely many")
    steps = max(round(wanted.known / case.minibatch), WINDOW)
    having = tuple(range(case.ranks - case.loss_ranks, case.ranks))
    made = []
    for step in range(steps):
        loss = TARGET / 2 if step >= steps - WINDOW else 10 * TARGET
        made.append(Event("step", step, step + 1.0, step=step))
        made.append(Event("loss", step + 1.0, step + 1.0, ranks=having, step=step, value=loss))
    return events(*made)


METRICS = [Metric("samples_to_loss", "samples", "lower", launch=samples_to_loss, made_up=made_up, instead=not_reached)]
