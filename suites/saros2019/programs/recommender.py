"""Learns from the first part of each user's interactions and ranks the items of the last part: MovieLens 100K or
planted preferences, by SAROS or by what it is compared with, with and without bots. Tested once, after training.

Events: `step`: a pass; `loss` of each pass, where one is computed; `diverged`: the pass after which it ended; else a
value for each metric of ranking.py, and what was counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from suite_programs import library_bpr, movielens, planted
from suite_programs.contract import Learner, Settings
from suite_programs.interactions import Interactions, blocks_of, divided, joined, pairs_of, shuffled
from suite_programs.learners import SIGNS, Saros, learner_of
from suite_programs.ranking import average_precision, ndcg, places_of, quality, ranked_catalogue, ranked_own

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, timed_iterations
from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.spec.program_options import Options, choice, real, whole

PROMOTED = 10
"""Places that an item is shown in."""
TRAIN = 0.8
"""Share of each user's interactions, the first ones, that is learned from (SAROS@9ce3670)."""
DIVERGED = 100 * float(np.log(2))
"""Mean loss above which a training has diverged: 100 times that of guessing."""


def preload(case: OwnCase) -> tuple[str, ...]:
    """See harness/scaleproof/programs/own.py: the library of one method takes as long to import as a launch of it."""
    return ("numba", library_bpr.MODULE) if case.options.get("method") == library_bpr.NAME else ("numba",)


def obstacle(case: AnyCase) -> tuple[str, str] | None:
    """See harness/scaleproof/programs/own.py: MovieLens 100K and the library come with an extra."""
    if not isinstance(case, OwnCase):
        return None
    missing = library_bpr.obstacle() if case.options.get("method") == library_bpr.NAME else None
    if missing is None and case.options.get("data") == "movielens":
        return movielens.obstacle()
    return missing


@dataclass(frozen=True, slots=True)
class Task:
    """`train` has `known` real users first, then bots; `test` has the real users. `target`: what bots click."""

    train: Interactions
    test: Interactions
    known: int
    target: int


def run(context: RankContext) -> None:
    """Options: see suite.yaml. The seed draws first factors, the order of users, planted data and bots."""
    case = context.case
    assert isinstance(case, OwnCase)
    context.at(-1, "data")
    task = task_of(case.options, context.seed)
    learner = learner_of(str(case.options["method"]), task.train, task.known, settings_of(case.options), context.seed)
    _compile(case, task)
    passes = 0 if case.options["method"] == "untrained" else case.iterations
    mark(context, "start", 0)
    for step in timed_iterations(context, 0, passes):
        context.at(step, "pass")
        start = now()
        loss = learner.one_pass()
        end = now()
        context.recorder.add("step", step, start, end)
        if loss is None:
            continue
        context.recorder.add("loss", step, end, end, value=loss)
        if not np.isfinite(loss) or loss > DIVERGED:
            context.recorder.add("diverged", step, end, end, value=step)
            mark(context, "end", 0)
            return
    mark(context, "end", 0)
    for name, value in results(task, learner, max(passes, 1), context.seed).items():
        moment = now()
        context.recorder.add(name, 0, moment, moment, value=value)


def settings_of(options: Options) -> Settings:
    """Of a case."""
    of = {name: real(options, name, 0) for name in ("rate", "l2")}
    of |= {name: real(options, name, 0, 1) for name in ("momentum", "least", "most")}
    dim, fixed_most = whole(options, "dim", 1), whole(options, "fixed_most", 0)
    return Settings(dim, choice(options, "initial", SIGNS), fixed_most=fixed_most, **of)


def task_of(options: Options, seed: int) -> Task:
    """With `split: validation` the last part of the training part stands for the test, which is not touched."""
    rows = _rows(options, seed)
    train, test = divided(rows, TRAIN)
    if choice(options, "split", ("test", "validation")) == "validation":
        train, test = divided(train, TRAIN)
    known, target = train.users, planted.rare_item(train, whole(options, "target_clicks", 0))
    if choice(options, "order", ("time", "shuffled")) == "shuffled":
        train = shuffled(train, np.random.default_rng([seed, 6]))
    if bots := whole(options, "bots", 0):
        robots = planted.bots(bots, whole(options, "bot_blocks", 1), target, train.items, seed)
        train = joined(train, robots)
    return Task(train, test, known, target)


def _rows(options: Options, seed: int) -> Interactions:
    if choice(options, "data", ("planted", "movielens")) == "movielens":
        return movielens.read_movielens()
    return planted.draw(planted.law_of(options), seed)


def results(task: Task, learner: Learner, passes: int, seed: int) -> dict[str, float]:
    """A value for each metric, and what was counted."""
    found = quality_of(task, learner.scores(task.known), seed)
    found["updates_per_pass"] = learner.work.updates / passes
    found["pairs_per_pass"] = learner.work.pairs / passes
    found["all_pairs"] = pairs_of(task.train).count
    found["blocks"] = len(blocks_of(task.train).start)
    if isinstance(learner, Saros):
        found["users_undone"] = float(learner.undone[: task.known].mean())
        if task.train.users > task.known:
            found["bots_undone"] = float(learner.undone[task.known :].mean())
    return found


def quality_of(task: Task, scores: np.ndarray, seed: int) -> dict[str, float]:
    """How well scores (real users, items) rank: each user's own test items, and all items that it has not met."""
    random, test = np.random.default_rng([seed, 7]), task.test
    own = ranked_own(test, scores[test.user, test.item], random)
    found = quality(own)
    found["authors_map_at_5"] = float(average_precision(own, 5, authors=True).mean())
    found["authors_ndcg_at_5"] = float(ndcg(own, 5, authors=True).mean())
    real = task.train.part(task.train.user < task.known)
    found |= quality(ranked_catalogue(real, test, scores, random), "catalogue_")
    places = places_of(scores, task.target)
    found["promoted_place"] = float(places.mean())
    found["promoted_share"] = float((places <= PROMOTED).mean())
    return found


def _compile(case: OwnCase, task: Task) -> None:
    """Machine code is made or loaded before anything is timed: one pass over a user's first interactions."""
    few = task.train.part(task.train.user == 0)
    learner_of(str(case.options["method"]), few, few.users, settings_of(case.options), 0).one_pass()
