"""The time in which tables take up the neurons of a layer: insertion alone, and with the hashing before it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from suite_programs import memory
from suite_programs.hashing import family
from suite_programs.options import Options
from suite_programs.tables import Tables

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.spec.case import OwnCase


def run(context: RankContext) -> None:
    """A step hashes and inserts all neurons; event `insertion`: the second half of it alone, once more."""
    case = context.case
    assert isinstance(case, OwnCase)
    of, threads = Options(case.options), case.threads_per_rank
    generator = np.random.default_rng([context.seed, 9])
    neurons = generator.standard_normal((of.number("labels"), of.number("units")), np.float32)
    functions = family(of.text("hash"), neurons.shape[1], of.number("bits"), of.number("tables"), context.seed)
    room, policy = of.number("room"), of.text("policy")
    tables = Tables(of.number("tables"), functions.buckets, room, policy, memory.allocator(False))
    codes = functions.codes(neurons)
    mark(context, "start", 0)
    with ThreadPoolExecutor(threads) as pool:
        for step in timed_iterations(context, case.warmup, case.iterations):
            context.at(step, "insertion")
            start = now()
            tables.insert(codes, pool, threads, context.seed + step)
            context.recorder.add("insertion", step, start, now())
            start = now()
            tables.rebuild(functions, neurons, pool, threads, context.seed + step)
            context.recorder.add("step", step, start, now())
    mark(context, "end", 0)
    context.check("all inserted", bool((tables.counts.sum(1) == len(neurons)).all()), f"{len(neurons)} neurons")


PRELOAD = ("numba",)
