"""Loss over the number of updates: SAROS, a step after each block, and BPR_b, a step along the gradient of all pairs.

Events: `step`: a pass; `pair_loss`, whose step is the number of updates before it: after the first user or pass with 1,
2, 4, 8, ... updates, and at the end; `diverged`: the updates after which it ended."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from suite_programs import kernels
from suite_programs.interactions import Interactions, Pairs, pairs_of
from suite_programs.learners import FullBatch, Saros, learner_of
from suite_programs.recommender import DIVERGED, obstacle, preload, settings_of, task_of

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.spec.case import OwnCase
from scaleproof.spec.program_options import choice

__all__ = ["obstacle", "preload", "run"]


def run(context: RankContext) -> None:
    """Options: as of recommender, with `method` saros or bpr_b. The seed draws first factors and the order of users."""
    case = context.case
    assert isinstance(case, OwnCase)
    context.at(-1, "data")
    method, settings = choice(case.options, "method", ("saros", "bpr_b")), settings_of(case.options)
    task = task_of(case.options, context.seed)
    learner = learner_of(method, task.train, task.known, settings, context.seed)
    assert isinstance(learner, Saros | FullBatch)
    pairs, following = pairs_of(task.train), 1
    _compile(method, case, task.train)
    mark(context, "start", 0)
    _note(context, 0, pair_loss(learner, pairs))
    for step in timed_iterations(context, 0, case.iterations):
        context.at(step, "pass")
        start = now()
        for _ in parts_of(learner, following):
            if learner.work.updates >= following:
                following = 2 ** learner.work.updates.bit_length()
                if not _note(context, learner.work.updates, pair_loss(learner, pairs)):
                    return
        end = now()
        context.recorder.add("step", step, start, end)
    mark(context, "end", 0)
    _note(context, learner.work.updates, pair_loss(learner, pairs))


def parts_of(learner: Saros | FullBatch, following: int) -> Iterator[None]:
    """A pass, which stops after the first user with `following` updates or more, then after twice as many and so on. A
    pass of BPR_b is one update."""
    if isinstance(learner, FullBatch):
        learner.one_pass()
        yield
        return
    ends = learner.work.updates + np.cumsum(learner.blocks.of_user[learner.order])
    first = 0
    while first < len(ends):
        last = min(int(np.searchsorted(ends, following)) + 1, len(ends))
        learner.steps_of(learner.order[first:last])
        first, following = last, 2 ** int(ends[last - 1]).bit_length()
        yield


def pair_loss(learner: Saros | FullBatch, pairs: Pairs) -> float:
    """Mean over users with pairs of the mean of log(1 + exp(-U.(Vi - Vj))) over their pairs, without L2."""
    users = np.zeros_like(learner.users)
    total, _ = kernels.full_gradient(
        learner.users, learner.items, pairs.first_clicked, pairs.clicked, pairs.first_other, pairs.other, 0.0,
        users, np.zeros_like(learner.items),
    )  # fmt: skip
    known = np.minimum(np.diff(pairs.first_clicked), np.diff(pairs.first_other)) > 0
    return float(total) / int(known.sum())


def _note(context: RankContext, updates: int, loss: float) -> bool:
    """False where the training has diverged."""
    moment = now()
    if np.isfinite(loss) and loss <= DIVERGED:
        context.recorder.add("pair_loss", updates, moment, moment, value=loss)
        return True
    context.recorder.add("diverged", updates, moment, moment, value=updates)
    mark(context, "end", 0)
    return False


def _compile(method: str, case: OwnCase, train: Interactions) -> None:
    """Machine code is made or loaded before anything is timed: one pass over a user's first interactions."""
    few = train.part(train.user == 0)
    learner = learner_of(method, few, few.users, settings_of(case.options), 0)
    assert isinstance(learner, Saros | FullBatch)
    learner.one_pass()
    pair_loss(learner, pairs_of(few))
