"""What single operations cost here: for a model that counts operations. Each is timed alone, after a launch's steps, at
the launch's number of labels and on its threads; `fixed` is a step of the same method with few labels."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from suite_programs import kernels
from suite_programs.extreme_data import Samples
from suite_programs.slide_network import HIDDEN, SlideNetwork, batch_of
from suite_programs.tables import run_all

REPEATS = 5
FEW_LABELS = 256
"""Labels of a step whose output layer costs next to nothing."""
SAMPLES = 32
"""Rows that the probe of visits has for each thread."""


def seconds(work: Callable[[], object]) -> float:
    """The median of a few calls, after one that is not counted."""
    work()
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def of_slide(made: SlideNetwork, active: float, fixed: Callable[[], object], seed: int) -> dict[str, float]:
    """Seconds of a visit of an active neuron (forward and back), of a row of Adam, of a neuron and table of an
    insertion, and of a floating-point operation of hashing."""
    labels, threads = len(made.output.weights), made.threads
    count = max(2, min(int(active), labels))
    generator = np.random.default_rng([seed, 10])
    rows = np.stack([generator.permutation(labels)[:count].astype(np.int32) for _ in range(threads * SAMPLES)])
    hidden = np.abs(generator.standard_normal((len(rows), HIDDEN))).astype(np.float32)
    delta, layer = np.empty_like(hidden), made.output
    arrays = (layer.weights, layer.bias, layer.gradient, layer.bias_gradient, layer.touched)

    def visit(part: int) -> None:
        logits = np.empty(count, np.float32)
        for row in range(part * SAMPLES, (part + 1) * SAMPLES):
            kernels.output_layer(rows[row], count, 1, 0.0, hidden[row], *arrays, delta[row], logits)

    found = {
        "visit": seconds(lambda: run_all(made.pool, visit, threads)) / (len(rows) * count),
        "adam": seconds(lambda: run_all(made.pool, lambda part: layer.update(part, threads, False, 0.0, 1), threads))
        / labels,
        "fixed": seconds(fixed),
    }
    if made.sampling.hashes:
        hashing = seconds(lambda: made.family.codes(layer.weights[: len(rows)]))
        codes = made.family.codes(layer.weights)
        inserting = seconds(lambda: made.tables.insert(codes, made.pool, threads, 1))
        found |= {"hash": hashing / len(rows), "insert": inserting / codes.size}
    return found


def of_full(labels: int, batch: int, fixed: Callable[[], object]) -> dict[str, float]:
    """Seconds of a floating-point operation in products of the full softmax's shapes, and of a byte that passes by in
    one pass over an array as large as the weights."""
    import torch

    hidden, weights = torch.ones(batch, HIDDEN), torch.ones(labels, HIDDEN)
    error = torch.ones(batch, labels)

    def products() -> None:
        hidden @ weights.T
        error.T @ hidden
        error @ weights

    target = torch.empty_like(weights)
    return {
        "flop": seconds(products) / (6 * batch * labels * HIDDEN),
        "byte": seconds(lambda: torch.add(weights, weights, out=target)) / (3 * 4 * weights.numel()),
        "fixed": seconds(fixed),
    }


def fixed_step(make: Callable[[Any, int], Any], options: Any, samples: Samples, threads: int, seed: int) -> Any:
    """A function that takes a step of the same method with few labels; its network is made here."""
    given = dict(options.given) | {"labels": FEW_LABELS, "fill": 2, "sampling": "random", "classes": 2}
    made = make(replace(options, given=given), threads, seed)
    few = replace(samples, labels=np.where(samples.labels >= 0, samples.labels % FEW_LABELS, -1))
    batch = batch_of(few, np.arange(int(given["batch"])))
    return made, lambda: made.step(batch, 0.001)
