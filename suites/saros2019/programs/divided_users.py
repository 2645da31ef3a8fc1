"""SAROS with users divided over ranks: each rank learns from its own users, and the factors of items are brought into
agreement after each round of so many users of a rank (exchange.py). Factors of users never leave their rank before the
end, where rank 0 ranks all test items."""

from __future__ import annotations

import numpy as np
from suite_programs import kernels, recommender
from suite_programs.exchange import FLOAT, AllReduce, Alone, Exchange, Servers
from suite_programs.interactions import Blocks, blocks_of
from suite_programs.learners import Factors
from suite_programs.recommender import Task, settings_of, task_of

from scaleproof.collectives.group import Group, open_group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import leave, mark, timed_iterations
from scaleproof.spec.case import OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.program_options import choice, whole

preload, obstacle = recommender.preload, recommender.obstacle
WAYS = ("alone", "all_reduce", "server")
SKETCH = 32
"""Projections, with which a distance is known to about an eighth."""


def run(context: RankContext) -> None:
    """Options: those of recommender.py; `exchange`: one of WAYS; `round_users`: of a rank, between two exchanges.
    Events: `step`: a pass; `sent`, once: bytes that this rank was asked to send in all passes; `rows_met`: rows of
    items that it met in all rounds; `items_norm` and `items_sketch` of the factors of items that it ends with; on
    rank 0 metrics of ranking.py."""
    case = context.case
    assert isinstance(case, OwnCase)
    task = task_of(case.options, context.seed)
    group = open_group(context)
    assert isinstance(group, Group)
    try:
        worker = Worker(case, task, group, context.seed)
        group.barrier()
        mark(context, "start", 0, group)
        before = group.traffic.nbytes
        for step in timed_iterations(context, 0, case.iterations):
            context.at(step, "pass")
            start = now()
            worker.one_pass()
            context.recorder.add("step", step, start, now())
        sent = group.traffic.nbytes - before
        mark(context, "end", 0, group)
        context.recorder.add("sent", 0, now(), now(), nbytes=sent, value=sent)
        context.recorder.add("rows_met", 0, now(), now(), value=worker.rows_met)
        worker.gather()
        _note(context, task, worker)
    finally:
        leave(context, group)


def _note(context: RankContext, task: Task, worker: Worker) -> None:
    context.recorder.add("items_norm", 0, now(), now(), value=float(np.linalg.norm(worker.items.astype(float))))
    for number, value in enumerate(sketch(worker.items)):
        context.recorder.add("items_sketch", number, now(), now(), value=float(value))
    if context.rank == 0:
        found = recommender.quality_of(task, worker.users @ worker.items.T, context.seed)
        for name, value in found.items():
            context.recorder.add(name, 0, now(), now(), value=value)


def sketch(items: np.ndarray) -> np.ndarray:
    """Projections of all factors on normal directions, the same ones in every launch (SKETCH,): the root mean square of
    the difference of two sketches estimates the Euclidean distance of the factors."""
    directions = np.random.default_rng(17).standard_normal((SKETCH, items.size))
    found: np.ndarray = directions @ items.reshape(-1).astype(float)
    return found


class Worker:
    """A rank: `users` float32 (all users, d), of which it changes every n-th in the order of users, and `items`."""

    def __init__(self, case: OwnCase, task: Task, group: Group, seed: int) -> None:
        of = case.options
        self._settings, self._group = settings_of(of), group
        first = Factors(task.train, task.known, self._settings, seed)
        self.users, self.items = first.users.astype(FLOAT), first.items.astype(FLOAT)
        self._blocks = blocks_of(task.train)
        self._round_users = whole(of, "round_users", 1)
        order = np.argsort(np.random.default_rng([seed, 3]).random(task.known), kind="stable")
        self._order = np.ascontiguousarray(order[group.rank :: group.world_size])  # as compiled below
        most = -(-task.train.users // group.world_size)
        self._rounds = -(-most // self._round_users)
        self._velocities = np.zeros_like(self.users), np.zeros_like(self.items)
        self._undo = np.zeros(task.train.users, bool)
        self._exchange = _exchange(str(of["exchange"]), group, self.items)
        self.rows_met = 0
        self._learn(self._order[:0])  # machine code is made or loaded before anything is timed

    def one_pass(self) -> None:
        """Over all own users. A rank whose users are through takes part in the last exchange without any."""
        for number in range(self._rounds):
            some = self._order[number * self._round_users : (number + 1) * self._round_users]
            met = items_met(self._blocks, some)
            self.rows_met += len(met)
            self._exchange.round(self.items, met, lambda chosen=some: self._learn(chosen))  # type: ignore[misc]

    def _learn(self, some: np.ndarray) -> None:
        of, b = self._settings, self._blocks
        kernels.saros_pass(
            self.users, self.items, *self._velocities, some, b.first, b.start, b.middle, b.end, b.item,
            of.rate, of.l2, of.momentum, self._undo,
        )  # fmt: skip

    def gather(self) -> None:
        """Rank 0 and all others get the factors of all users and items."""
        self._exchange.finish(self.items)
        if self._group.world_size == 1:
            return
        own = self._group.allocate(self.users.nbytes).view(FLOAT).reshape(self.users.shape)
        own[:] = 0
        own[self._order] = self.users[self._order]
        self._group.all_reduce(own.reshape(-1)).wait()
        self.users[:] = own


def items_met(blocks: Blocks, users: np.ndarray) -> np.ndarray:
    """Items in blocks of these users, ascending, each once."""
    some = [blocks.of_users(int(user), int(user) + 1) for user in users]
    parts = [blocks.item[blocks.start[one.start] : blocks.end[one.stop - 1]] for one in some if one.start < one.stop]
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def _exchange(way: str, group: Group, items: np.ndarray) -> Exchange:
    choice({"exchange": way}, "exchange", WAYS)
    if (way == "alone") != (group.world_size == 1):
        raise SpecError(f"options.exchange: {way!r} does not go with {group.world_size} ranks: one rank is alone")
    if way == "alone":
        return Alone()
    return AllReduce(group, items) if way == "all_reduce" else Servers(group, items)
