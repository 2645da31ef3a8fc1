"""What tables retrieve of random neurons: how often that from which a query was made, and which share of the neurons of
the largest inner products; without any training."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from suite_programs import memory
from suite_programs.hashing import Family, family
from suite_programs.options import TOP, Options
from suite_programs.tables import Tables, held

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.spec.case import OwnCase

COSINES = (0.9, 0.7, 0.5)
"""Of a query with the neuron from which it is made."""


def queries(neurons: np.ndarray, of: np.ndarray, cosine: float, generator: np.random.Generator) -> np.ndarray:
    """Unit vectors that have this cosine with the neurons `of`, which are unit vectors."""
    noise = generator.standard_normal((len(of), neurons.shape[1])).astype(np.float32)
    noise -= (noise * neurons[of]).sum(1, keepdims=True) * neurons[of]
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    made: np.ndarray = cosine * neurons[of] + np.sqrt(1 - cosine**2) * noise
    return made.astype(np.float32)


def run(context: RankContext) -> None:
    """A step has functions of its own, and looks up as many queries at each cosine. Event `retrieved`: share of queries
    whose neuron was found, with the cosine in hundredths as `nbytes`; `recall`: share of the top ten; `share`: of all
    neurons."""
    case = context.case
    assert isinstance(case, OwnCase)
    of = Options(case.options)
    generator = np.random.default_rng([context.seed, 8])
    neurons = generator.standard_normal((of.number("labels"), of.number("units"))).astype(np.float32)
    neurons /= np.linalg.norm(neurons, axis=1, keepdims=True)
    alias = generator.permutation(len(neurons)) if of.number("shuffled") else np.arange(len(neurons))
    mark(context, "start", 0)
    with ThreadPoolExecutor(case.threads_per_rank) as pool:
        for step in timed_iterations(context, case.warmup, case.iterations):
            start = now()
            bits, count = of.number("bits"), of.number("tables")
            functions = family(of.text("hash"), neurons.shape[1], bits, count, context.seed + step)
            tables = Tables(count, functions.buckets, of.number("room"), "fifo", memory.allocator(False))
            tables.rebuild(functions, neurons, pool, case.threads_per_rank, step)
            for cosine in COSINES:
                _look_up(context, step, cosine, functions, tables, neurons, alias, generator)
            context.recorder.add("step", step, start, now())
    mark(context, "end", 0)


def _look_up(
    context: RankContext,
    step: int,
    cosine: float,
    functions: Family,
    tables: Tables,
    neurons: np.ndarray,
    alias: np.ndarray,
    generator: np.random.Generator,
) -> None:
    options = context.case.value("options")
    of = generator.integers(0, len(neurons), int(options["queries"]))
    asked = queries(neurons, of, cosine, generator)
    found = held(tables.neurons, tables.counts, functions.codes(asked), alias)
    top = np.argpartition(-(asked @ neurons.T), TOP, 1)[:, :TOP]
    moment, hundredths = now(), round(100 * cosine)
    for event, value in (
        ("retrieved", found[np.arange(len(of)), of].mean()),
        ("recall", np.take_along_axis(found, top, 1).mean()),
        ("share", found.mean()),
    ):
        context.recorder.add(event, step, moment, moment, hundredths, float(value))


PRELOAD = ("numba",)
