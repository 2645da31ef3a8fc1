"""Trains the network by one method, a batch a step, and tests it over all labels."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from suite_programs import extreme_data, memory
from suite_programs.extreme_data import Samples
from suite_programs.hashing import Family, family
from suite_programs.options import TOP, Options
from suite_programs.slide_network import Batch, Sampling, SlideNetwork, Weights, batch_of, initial
from suite_programs.tables import Tables, held

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.spec.case import AnyCase, OwnCase

ROWS = 1024
"""Test samples that are scored at once."""
SLIDE = "slide"
"""The method of ours; all others are torch's."""


class Network(Protocol):
    """What SLIDE and the baselines share."""

    active: int
    changed_rows: int

    def rebuild(self) -> None: ...
    def step(self, batch: Batch, rate: float) -> float: ...
    def weights(self) -> Weights: ...
    def close(self) -> None: ...


def obstacle(case: AnyCase) -> tuple[str, str] | None:
    """Huge pages need a kernel that gives them."""
    wanted = isinstance(case, OwnCase) and case.options.get("pages") == "huge"
    return memory.huge_pages_obstacle() if wanted else None


def preload(case: OwnCase) -> tuple[str, ...]:
    """Modules that the ranks' parent imports. SLIDE needs no torch, whose import takes a second."""
    return ("numba",) if case.options.get("method") == SLIDE else ("torch", "numba")


class Rebuilds:
    """Steps before which tables are built: the t-th interval is `period` exp(`decay` t) steps (section 4.2 of the
    paper); with `decay` 0 it is constant, as in the authors' code."""

    def __init__(self, period: int, decay: float) -> None:
        self._period, self._decay, self._next, self._count = period, decay, 0.0, 0

    def due(self, step: int) -> bool:
        """Whether this step begins with one; called for each step in its order."""
        if step < self._next:
            return False
        self._next += self._period * float(np.exp(self._decay * self._count))
        self._count += 1
        return True


def slide_network(of: Options, weights: Weights, threads: int, seed: int) -> SlideNetwork:
    """The network that the options describe."""
    allocate = memory.allocator(of.text("pages") == "huge")
    dimensions = weights.output.shape[1]

    def families(draw: int) -> Family:
        functions_seed = seed + 1_000_003 * draw
        return family(
            of.text("hash"), dimensions, of.number("bits"), of.number("tables"), functions_seed, of.number("shift")
        )

    sampling = Sampling(
        of.text("sampling"),
        of.number("most"),
        of.number("least"),
        of.number("fill"),
        bool(of.number("shuffled")),
        bool(of.number("centred")),
        of.number("rehash"),
    )
    count, buckets = (of.number("tables"), families(0).buckets) if sampling.hashes else (1, 1)
    made = Tables(count, buckets, of.number("room"), of.text("policy"), allocate)
    return SlideNetwork(weights, families, made, sampling, threads, seed, allocate, of.text("adam") == "lazy")


def network(of: Options, threads: int, seed: int) -> Network:
    """SLIDE, or a baseline."""
    weights = initial(of.number("labels"), seed, spread=of.real("spread"))
    if of.text("method") == SLIDE:
        return slide_network(of, weights, threads, seed)
    from suite_programs.torch_softmax import TorchNetwork

    classes = of.number("classes") if of.text("method") == "sampled" else 0
    return TorchNetwork(weights, classes, of.real("rate"), threads, seed)


def run(context: RankContext) -> None:
    """Steps are samples, with the loss as value. Rebuilding tables is an event of its own between two steps."""
    case = context.case
    assert isinstance(case, OwnCase)
    of = Options(case.options)
    context.at(-1, "data")
    counts = (of.number(name) for name in ("labels", "train", "test"))
    data = extreme_data.make(of.text("data"), *counts, of.real("two"), context.seed)
    train = extreme_data.permuted(data[0], context.seed) if of.number("permuted") else data[0]
    made = network(of, case.threads_per_rank, context.seed)
    try:
        _train(context, case, of, made, train)
        context.at(case.iterations, "test")
        _test(context, of, made, data[1])
        if of.number("rates"):
            context.at(case.iterations, "rates")
            _rates(context, of, made, train, case)
    finally:
        made.close()


def _train(context: RankContext, case: OwnCase, of: Options, made: Network, train: Samples) -> None:
    generator = np.random.default_rng([context.seed, 7])
    batch, rebuilds, record = of.number("batch"), Rebuilds(of.number("period"), of.real("decay")), context.recorder
    order = np.empty(0, np.int64)
    misses, faults = memory.DataTlbMisses(), 0
    mark(context, "start", 0)
    for step in timed_iterations(context, case.warmup, case.iterations):
        context.at(step, "step")
        if step == case.warmup:
            made.active = made.changed_rows = 0
            faults, before = memory.page_faults(), misses.count()
        if len(order) < batch:
            order = np.concatenate([order, generator.permutation(len(train))])
        rows, order = order[:batch], order[batch:]
        if rebuilds.due(step):
            start = now()
            made.rebuild()
            record.add("rebuild", step, start, now())
        start = now()
        loss = made.step(batch_of(train, rows), of.real("rate"))
        record.add("step", step, start, now(), value=loss)
    mark(context, "end", 0)
    after = misses.count()
    misses.close()
    _note(context, "page_faults", memory.page_faults() - faults)
    if before is not None and after is not None:
        _note(context, "dtlb_misses", after - before)
    _note(context, "huge_mib", memory.huge_mib())
    _note(context, "active", active_neurons(made, of, case))
    _note(context, "changed_rows", made.changed_rows / case.iterations)


def active_neurons(made: Network, of: Options, case: OwnCase) -> float:
    """Mean of a sample in the timed steps, with which the count begins."""
    return made.active / (case.iterations * of.number("batch"))


def _note(context: RankContext, event: str, value: float) -> None:
    moment = now()
    context.recorder.add(event, 0, moment, moment, value=float(value))


def _test(context: RankContext, of: Options, made: Network, test: Samples) -> None:
    """Precision at 1 over all labels; the mean cosine of a sample with its ten best neurons; for tables, which share of
    those they find."""
    weights = made.weights()
    hits, hidden = 0, hidden_of(weights, test)
    for first in range(0, len(test), ROWS):
        part = hidden[first : first + ROWS]
        best = (part @ weights.output.T + weights.output_bias).argmax(1)
        hits += int((best[:, None] == test.labels[first : first + ROWS]).any(1).sum())
    _note(context, "precision", hits / len(test))
    context.check("finite", bool(np.isfinite(weights.output).all()), "weights of the output layer")
    asked = hidden[: of.number("queries")]
    _note(context, "cosine", best_cosine(weights.output, asked))
    if isinstance(made, SlideNetwork) and made.sampling.hashes:
        start = now()
        made.rebuild()
        context.recorder.add("rebuild", 0, start, now())
        recall, share = retrieved_share(made, asked)
        _note(context, "recall", recall)
        _note(context, "retrieved_share", share)


def _rates(context: RankContext, of: Options, made: Network, samples: Samples, case: OwnCase) -> None:
    """Events `rate_...`: what single operations cost."""
    from suite_programs import rates

    threads = case.threads_per_rank
    few, fixed = rates.fixed_step(network, of, samples, threads, context.seed)
    try:
        if isinstance(made, SlideNetwork):
            found = rates.of_slide(made, active_neurons(made, of, case), fixed, context.seed)
        else:
            found = rates.of_full(of.number("labels"), of.number("batch"), fixed)
    finally:
        few.close()
    for name, value in found.items():
        _note(context, f"rate_{name}", value)


def hidden_of(weights: Weights, samples: Samples) -> np.ndarray:
    """Activations of the hidden layer for all samples."""
    from suite_programs.kernels import hidden_layer

    made = np.empty((len(samples), weights.first.shape[1]), np.float32)
    arrays = (samples.starts, samples.indices, samples.values, weights.first, weights.first_bias, made)
    hidden_layer(0, len(samples), *arrays)
    return made


def best_neurons(neurons: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """The ten neurons of the largest inner products with each query, in any order: (queries, TOP)."""
    return np.argpartition(-(hidden @ neurons.T), TOP, 1)[:, :TOP]


def best_cosine(neurons: np.ndarray, hidden: np.ndarray) -> float:
    """Mean cosine of queries with their ten best neurons; of a query of zeros 0."""
    chosen = neurons[best_neurons(neurons, hidden)]
    products = (chosen * hidden[:, None]).sum(2)
    lengths = np.linalg.norm(chosen, axis=2) * np.linalg.norm(hidden, axis=1)[:, None]
    return float((products / np.maximum(lengths, np.finfo(np.float32).tiny)).mean())


def retrieved_share(made: SlideNetwork, hidden: np.ndarray) -> tuple[float, float]:
    """Which share of each query's ten neurons of the largest inner products its buckets hold, and which share of all
    neurons; with a shuffled table: of the neurons that it says."""
    codes = np.ascontiguousarray(made.codes(hidden).T)
    found = held(made.tables.neurons, made.tables.counts, codes, made.alias)
    top = best_neurons(made.output.weights, hidden)
    return float(np.take_along_axis(found, top, 1).mean()), float(found.mean())
