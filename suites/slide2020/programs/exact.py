"""Losses of SLIDE beside those of the full softmax in torch, from the same weights and with the same samples."""

from __future__ import annotations

import numpy as np
from suite_programs import extreme_data
from suite_programs.options import Options
from suite_programs.slide_network import batch_of, initial
from suite_programs.torch_softmax import TorchNetwork
from suite_programs.training import slide_network

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.spec.case import OwnCase


def run(context: RankContext) -> None:
    """Event `loss_difference`: the largest distance of two losses of a step."""
    case = context.case
    assert isinstance(case, OwnCase)
    of, threads = Options(case.options), case.threads_per_rank
    labels, rate = of.number("labels"), of.real("rate")
    train, _ = extreme_data.make(
        of.text("data"), labels, of.number("train"), of.number("test"), of.real("two"), context.seed
    )
    start_of = initial(labels, context.seed, spread=of.real("spread"))  # both copy it
    ours = slide_network(of, start_of, threads, context.seed)
    theirs = TorchNetwork(start_of, 0, rate, threads, context.seed)
    generator, apart = np.random.default_rng([context.seed, 7]), 0.0
    mark(context, "start", 0)
    ours.rebuild()
    for step in timed_iterations(context, case.warmup, case.iterations):
        batch, start = batch_of(train, generator.integers(0, len(train), of.number("batch"))), now()
        loss = ours.step(batch, rate)
        context.recorder.add("step", step, start, now(), value=loss)
        apart = max(apart, abs(loss - theirs.step(batch, rate)))
    mark(context, "end", 0)
    ours.close()
    context.recorder.add("loss_difference", 0, now(), now(), value=apart)


PRELOAD = ("torch", "numba")
