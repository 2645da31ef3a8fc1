"""The network's inner loops: machine code without Python's lock, so that threads run them side by side. Rows of weights
and gradients are shared without locks (HOGWILD, section 3.1 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from suite_programs.random_numbers import below

UNION, VANILLA, TOP_K, THRESHOLD, RANDOM, ALL = range(6)
SAMPLINGS = {"union": UNION, "vanilla": VANILLA, "topk": TOP_K, "threshold": THRESHOLD, "random": RANDOM, "all": ALL}
"""Where active neurons come from. union: all buckets, as in the authors' code; vanilla: buckets of tables in random
order, until there are `most`; topk: the `most` that are in the most buckets; threshold: those that are in at least
`least` buckets; random: drawn evenly; all: every neuron (K = 0)."""
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
"""Of Adam (section 4.1 of the paper)."""

_loop: Any = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"})
"""Sums may be reordered; infinities and what is not a number stay what they are."""


@_loop
def hidden_layer(
    first: int,
    last: int,
    starts: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray,
    hidden: np.ndarray,
) -> None:
    """ReLU of the sparse rows `first` to `last` - 1 times the weights (features, units), into `hidden`."""
    for row in range(first, last):
        into = hidden[row]
        into[:] = 0
        for at in range(starts[row], starts[row + 1]):
            feature = weights[indices[at]]
            for unit in range(len(into)):
                into[unit] += feature[unit]
        for unit in range(len(into)):
            into[unit] = max(into[unit] * values[row] + bias[unit], np.float32(0))


@_loop
def input_gradient(
    first: int,
    last: int,
    starts: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    hidden: np.ndarray,
    delta: np.ndarray,
    gradient: np.ndarray,
    bias_gradient: np.ndarray,
    touched: np.ndarray,
) -> None:
    """Adds what rows `first` to `last` - 1 contribute to the gradient of the first layer."""
    for row in range(first, last):
        of = delta[row]
        for unit in range(len(of)):
            of[unit] = of[unit] if hidden[row, unit] > 0 else np.float32(0)
            bias_gradient[unit] += of[unit]
        value = values[row]
        for at in range(starts[row], starts[row + 1]):
            feature = indices[at]
            into = gradient[feature]
            for unit in range(len(of)):
                into[unit] += of[unit] * value
            touched[feature] = 1


@njit(cache=True, nogil=True)
def _retrieve(
    sampling: int,
    most: int,
    least: int,
    neurons: np.ndarray,
    counts: np.ndarray,
    codes: np.ndarray,
    alias: np.ndarray,
    seen: np.ndarray,
    active: np.ndarray,
    known: int,
    state: np.ndarray,
) -> int:
    """Appends the neurons of a sample's buckets behind the `known` active ones. Returns how many are active. `seen`
    counts the buckets of each neuron, and is 0 again afterwards but for active neurons, which have 1."""
    tables, room = neurons.shape[0], neurons.shape[2]
    order = np.arange(tables)
    found = known
    for turn in range(tables):
        if sampling == VANILLA:
            if found - known >= most:
                break
            other = turn + below(state, tables - turn)
            order[turn], order[other] = order[other], order[turn]
        table = order[turn]
        bucket = codes[table]
        for place in range(min(counts[table, bucket], room)):
            neuron = alias[neurons[table, bucket, place]]
            if seen[neuron] == 0:
                active[found] = neuron
                found += 1
            seen[neuron] += 1
    if sampling == THRESHOLD:
        return _kept(least, len(active), active, known, found, seen)
    if sampling == TOP_K and found - known > most:
        return _kept(_cut(most, tables, active, known, found, seen), most, active, known, found, seen)
    return found


@njit(cache=True, nogil=True)
def _cut(most: int, tables: int, active: np.ndarray, known: int, found: int, seen: np.ndarray) -> int:
    """The number of buckets of the last neuron that is kept if the `most` of the most buckets are."""
    frequency = np.zeros(tables + 2, np.int64)
    for at in range(known, found):
        frequency[seen[active[at]]] += 1
    cut, above = tables + 1, 0
    while above + frequency[cut] <= most:
        above += frequency[cut]
        cut -= 1
    return cut


@njit(cache=True, nogil=True)
def _kept(least: int, most: int, active: np.ndarray, known: int, found: int, seen: np.ndarray) -> int:
    """Keeps neurons of at least so many buckets, at most `most` of them: those of exactly `least` buckets last."""
    kept = known
    above = 0
    for at in range(known, found):
        above += seen[active[at]] > least
    spare = most - above
    for at in range(known, found):
        neuron = active[at]
        count = seen[neuron]
        if count > least or (count == least and spare > 0):
            spare -= count == least
            active[kept] = neuron
            kept += 1
        else:
            seen[neuron] = 0
    return kept


@njit(cache=True, nogil=True)
def active_neurons(
    how: np.ndarray,
    labels: np.ndarray,
    tables: tuple[np.ndarray, np.ndarray],
    codes: np.ndarray,
    alias: np.ndarray,
    seen: np.ndarray,
    active: np.ndarray,
    state: np.ndarray,
) -> int:
    """The active neurons of a sample, its labels first; those of the tables; then random ones up to `fill`. Returns
    their number. `how`: sampling, most, least, fill. `seen` must be 0 and is 0 afterwards."""
    sampling, most, least, fill = how[0], how[1], how[2], how[3]
    neurons, counts = tables
    found, size = 0, len(seen)
    for label in labels:
        if label >= 0:
            active[found] = label
            seen[label] = 1
            found += 1
    if sampling == ALL:
        for neuron in range(size):
            if seen[neuron] == 0:
                active[found] = neuron
                found += 1
    elif sampling != RANDOM:
        found = _retrieve(sampling, most, least, neurons, counts, codes, alias, seen, active, found, state)
    while found < min(fill, size):
        neuron = below(state, size)
        if seen[neuron] == 0:
            seen[neuron] = 1
            active[found] = neuron
            found += 1
    for at in range(found):
        seen[active[at]] = 0
    return found


@_loop
def _logits(
    active: np.ndarray, count: int, hidden: np.ndarray, weights: np.ndarray, bias: np.ndarray, logits: np.ndarray
) -> float:
    """Logits of the active neurons. Returns the largest."""
    largest = np.float32(-np.inf)
    for at in range(count):
        row = weights[active[at]]
        total = np.float32(0)
        for unit in range(len(hidden)):
            total += row[unit] * hidden[unit]
        total += bias[active[at]]
        logits[at] = total
        largest = max(largest, total)
    return largest


@_loop
def output_layer(
    active: np.ndarray,
    count: int,
    targets: int,
    scale: float,
    hidden: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray,
    gradient: np.ndarray,
    bias_gradient: np.ndarray,
    touched: np.ndarray,
    delta: np.ndarray,
    logits: np.ndarray,
) -> float:
    """Softmax over the active neurons of a sample, of which the first `targets` are its labels: adds to the gradients,
    and to `delta` what the hidden units get. Returns the loss."""
    largest = _logits(active, count, hidden, weights, bias, logits)
    norm, loss = np.float32(0), np.float32(0)
    for at in range(count):
        shifted = logits[at] - largest
        if at < targets:
            loss -= shifted
        logits[at] = np.exp(shifted)
        norm += logits[at]
    delta[:] = 0
    for at in range(count):
        neuron = active[at]
        error = logits[at] / norm - (np.float32(1) / np.float32(targets) if at < targets else np.float32(0))
        error *= np.float32(scale)
        row, into = weights[neuron], gradient[neuron]
        for unit in range(len(hidden)):
            delta[unit] += error * row[unit]
            into[unit] += error * hidden[unit]
        bias_gradient[neuron] += error
        touched[neuron] = 1
    return loss / targets + np.log(norm)


@njit(cache=True, nogil=True)
def output_of_rows(
    first: int,
    last: int,
    how: np.ndarray,
    labels: np.ndarray,
    tables: tuple[np.ndarray, np.ndarray],
    codes: np.ndarray,
    alias: np.ndarray,
    scratch: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    hidden: np.ndarray,
    layer: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    delta: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Active neurons and output layer of rows `first` to `last` - 1. `how`: sampling, most, least, fill; `totals` gets
    the loss and the active neurons of these rows."""
    seen, active, logits, state = scratch
    weights, bias, gradient, bias_gradient, touched = layer
    loss, used = 0.0, 0
    for row in range(first, last):
        targets = 1 if labels[row, 1] < 0 else 2
        found = active_neurons(how, labels[row], tables, codes[row], alias, seen, active, state)
        loss += output_layer(
            active,
            found,
            targets,
            1.0 / len(labels),
            hidden[row],
            weights,
            bias,
            gradient,
            bias_gradient,
            touched,
            delta[row],
            logits,
        )
        used += found
    totals[0], totals[1] = loss, used


@_loop
def adam(
    first: int,
    last: int,
    lazy: bool,
    rate: float,
    step: int,
    weights: np.ndarray,
    gradient: np.ndarray,
    mean: np.ndarray,
    square: np.ndarray,
    touched: np.ndarray,
) -> int:
    """Adam's step on rows `first` to `last` - 1; lazy: on those alone that are touched. Their gradients are 0
    afterwards. Returns how many rows were changed."""
    of_mean, of_square = np.float32(BETA1), np.float32(BETA2)
    by, eps = np.float32(rate / (1 - BETA1**step)), np.float32(EPSILON)
    correct = np.float32(1 / (1 - BETA2**step))
    changed = 0
    for row in range(first, last):
        if lazy and touched[row] == 0:
            continue
        changed += 1
        w, g, m, v = weights[row], gradient[row], mean[row], square[row]
        for unit in range(len(w)):
            m[unit] = of_mean * m[unit] + (np.float32(1) - of_mean) * g[unit]
            v[unit] = of_square * v[unit] + (np.float32(1) - of_square) * g[unit] * g[unit]
            w[unit] -= by * m[unit] / (np.sqrt(v[unit] * correct) + eps)
            g[unit] = 0
    return changed
