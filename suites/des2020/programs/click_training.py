"""Training a recommender whose tables are divided over all ranks by feature id: by equivalent substitution, with
parameter servers, or by gathering weights."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from suite_programs.click_data import Clicks, Law, draw
from suite_programs.recommender import Dense, auc, form_of
from suite_programs.shards import Form, Gathering, Lookup, Shard

from scaleproof.rank_programs.collectives import barrier
from scaleproof.rank_programs.effects import Call, Charge, Collective, Compute, Effect, Sleep
from scaleproof.rank_programs.rank_program import Clock, RankProgram
from scaleproof.spec.case import OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.program_options import Options, choice, real, whole

TEST_STEP = 10**9
"""Samples of the test are drawn as of a step that no training has."""
Steps = Generator[Effect, Any, float]
WAYS = ("substitution", "server", "async_server", "all_gather")
LOOKUP, FORWARD, BACKWARD = 0.8, 0.1, 0.1
"""Shares of what a step's computing takes: which ids samples have and where, partial results and loss, gradients. On an
idle core the first took 65 to 85 %. The others run, and are padded to their time."""


@dataclass(frozen=True, slots=True)
class Minibatch:
    """What a rank computes with in a step; `labels`: of its own samples; `gathering`: where rows are gathered."""

    lookup: Lookup
    labels: np.ndarray
    gathering: Gathering | None = None


class ClickTraining(RankProgram):
    """Options: `model`; `way`: one of WAYS; `batch`: samples of a rank in a step; `ids`, `slots`, `fields`, `exponent`:
    of the data (click_data.py); `k`: values of an embedding; `rate`: learning rate; `alone`: 1 compares the losses with
    those of one process; `test_samples`: of a test after the training, whose bytes count as the training's;
    `compute_ms`: how long a rank computes in a step, where that is simulated, and at least, with `slept: 1`;
    `delay_ms`: mean of the exponential time by which a worker of asynchronous servers pushes late (default 0). Every
    rank holds the rows of every n-th id, and serves them where there are servers. Rows and dense layers are stepped by
    SGD."""

    def __init__(self, case: OwnCase, rank: int, clock: Clock) -> None:
        super().__init__(case, rank, clock)
        of = case.options
        self.law = Law(int(of["ids"]), int(of["slots"]), int(of["fields"]), float(of["exponent"]))
        self.form: Form = form_of(str(of["model"]), int(of["k"]), self.law.fields)
        self.way, self.batch, self.rate = choice(of, "way", WAYS), int(of["batch"]), np.float32(of["rate"])
        self.seed, self.test_samples = int(of.get("seed", 1)), whole(of, "test_samples")
        self.shard = Shard(self.form, self.law.ids, rank, self.world_size, self.seed)
        self.dense = Dense(str(of["model"]), self.form, self.seed)
        self.compute_s = real(of, "compute_ms", 0) / 1000
        self.delay_s = self._delay_ms(of) / 1000
        self.delays = np.random.default_rng([self.seed, 7, rank])
        self.taken, self.seen = 0, dict[int, int]()
        self.pushed = np.zeros_like(self.shard.rows)
        count = case.warmup + case.iterations
        self.minibatches = [self._minibatch(step) for step in range(count)]  # a reader makes them beside the training
        self.losses: list[float] = []

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        for step in self.steps():
            loss = yield from self._step(self.minibatches[step])
            self.losses.append(loss)
            self._clock.note("loss", loss)
        yield from barrier(self.rank, self.world_size)
        if self.test_samples:
            yield from self._test()
        if self.rank == 0 and self.case.options.get("alone"):
            self._clock.note("loss_difference", self._difference_alone())

    def _delay_ms(self, of: Options) -> float:
        """SpecError where nobody pushes asynchronously, and in processes that may not sleep."""
        delay_ms = real(of, "delay_ms", 0) if "delay_ms" in of else 0.0
        if delay_ms and not (self.case.slept or self.case.plugin("fabric").predicted):
            raise SpecError("options.delay_ms: ranks sleep for it; add slept: 1")
        if delay_ms and self.way != "async_server":
            raise SpecError(f"options.delay_ms: is of way 'async_server', not {self.way!r}; leave it out")
        return delay_ms

    def _minibatch(self, step: int) -> Minibatch:
        whole = draw(self.law, self.seed, step, self.batch * self.world_size)
        own = whole.part(slice(self.rank * self.batch, (self.rank + 1) * self.batch))
        if self.way == "substitution":
            return Minibatch(self._lookup(whole, self.world_size, self.rank), own.labels)
        lookup = self._lookup(own)
        gathering = Gathering(whole.ids, lookup, self.world_size) if self.way == "all_gather" else None
        return Minibatch(lookup, own.labels, gathering)

    def _step(self, minibatch: Minibatch) -> Steps:
        yield Compute(LOOKUP * self.compute_s)
        if self.way == "substitution":
            return (yield from self._substitute(minibatch))
        if self.way == "all_gather":
            return (yield from self._gather(minibatch))
        return (yield from self._with_servers(minibatch))

    def _scale(self, ranks: int) -> float:
        """Factor on a sum of losses whose gradient is that of the mean over so many ranks."""
        return 1.0 / (self.batch * ranks)

    def _lookup(self, clicks: Clicks, every: int = 1, first: int = 0) -> Lookup:
        return Lookup(clicks, self.law.field_of_slots(), self.law.fields, first, every)

    def _finish(self, partial: np.ndarray, labels: np.ndarray, ranks: int) -> tuple[float, np.ndarray]:
        loss, gradient = self.dense.loss(partial, labels, self._scale(ranks))
        return loss / len(labels), gradient

    def _substitute(self, minibatch: Minibatch) -> Steps:
        """Each rank applies the sub-operators to its own ids of all samples. Partial results are added up where a rank
        has its samples, and gradients of the sums come back to all."""
        form, n, lookup = self.form, self.world_size, minibatch.lookup
        places = self.shard.place(lookup.ids)
        forward, backward = FORWARD * self.compute_s / 2, BACKWARD * self.compute_s
        sums: np.ndarray = yield Compute(forward, lambda: lookup.partial(form, self.shard.rows[places]).reshape(-1))
        yield Collective("reduce_scatter", sums, tag=0)
        mine = slice(self.rank * self.batch, (self.rank + 1) * self.batch)
        table = sums.reshape(-1, form.floats)
        loss, gradient = yield Compute(forward, lambda: self._finish(table[mine].copy(), minibatch.labels, n))
        table[mine] = gradient
        yield Collective("all_gather", sums, tag=1)
        rows = self.shard.rows[places]
        self.shard.rows[places] -= self.rate * (yield Compute(backward, lambda: lookup.gradient(form, rows, table)))
        yield from self._step_dense()
        return float(loss)

    def _step_dense(self) -> Generator[Effect, Any, None]:
        yield Collective("all_reduce", self.dense.gradient, tag=2)
        self.dense.parameters -= self.rate * self.dense.gradient

    def _gather(self, minibatch: Minibatch) -> Steps:
        """Every rank gets the rows of all ids of the minibatch, and gradients of them are added up where rows lie."""
        n, lookup, of = self.world_size, minibatch.lookup, minibatch.gathering
        assert of is not None, "made with the minibatch"
        mine = of.ids[self.rank]
        rows = np.zeros((n, of.longest, self.form.per_id), np.float32)
        rows[self.rank, : len(mine)] = self.shard.rows[self.shard.place(mine)]
        yield Collective("all_gather", rows.reshape(-1), tag=0)
        used = rows[of.owner, of.place]
        loss, gradient = yield Compute(
            (FORWARD + BACKWARD) * self.compute_s, lambda: self._own_gradient(lookup, used, minibatch.labels, n)
        )
        summed = np.zeros_like(rows)
        summed[of.owner, of.place] = gradient
        yield Collective("reduce_scatter", summed.reshape(-1), tag=1)
        self.shard.rows[self.shard.place(mine)] -= self.rate * summed[self.rank, : len(mine)]
        yield from self._step_dense()
        return float(loss)

    def _own_gradient(
        self, lookup: Lookup, rows: np.ndarray, labels: np.ndarray, ranks: int
    ) -> tuple[float, np.ndarray]:
        loss, of_partial = self._finish(lookup.partial(self.form, rows), labels, ranks)
        return loss, lookup.gradient(self.form, rows, of_partial)

    def _with_servers(self, minibatch: Minibatch) -> Steps:
        """Pull the rows of the own samples' ids, push their gradients."""
        n, waits, lookup = self.world_size, self.way == "server", minibatch.lookup
        owner = lookup.ids % n
        rows = np.empty((len(lookup.ids), self.form.per_id), np.float32)
        for server in range(n):
            of_server = owner == server
            rows[of_server] = (yield from self._ask(server, lookup.ids[of_server])).reshape(-1, self.form.per_id)
        loss, gradient = yield Compute(
            (FORWARD + BACKWARD) * self.compute_s,
            lambda: self._own_gradient(lookup, rows, minibatch.labels, n if waits else 1),
        )
        if self.delay_s:
            yield Sleep(float(self.delays.exponential(self.delay_s)))
        for server in range(n):
            of_server = owner == server
            yield from self._push(server, lookup.ids[of_server], gradient[of_server])
        if not waits:
            parameters = yield from self._push_dense()
            self.dense.parameters[:] = parameters
            return float(loss)
        yield from barrier(self.rank, n)
        self.shard.rows -= self.rate * self.pushed
        yield Charge(2 * self.pushed.nbytes)
        self.pushed.fill(0)
        yield from self._step_dense()
        yield from barrier(self.rank, n)
        return float(loss)

    def _ask(self, server: int, ids: np.ndarray) -> Generator[Effect, Any, np.ndarray]:
        if server == self.rank:
            return self._give(self.rank, ids)
        answer: np.ndarray = yield Call(server, ids, "pull")
        return answer

    def _push(self, server: int, ids: np.ndarray, gradient: np.ndarray) -> Generator[Effect, Any, None]:
        if server == self.rank:
            self._take(self.rank, ids, gradient)
        else:
            sent = np.concatenate([ids.view(np.uint8), np.ascontiguousarray(gradient).reshape(-1).view(np.uint8)])
            yield Call(server, sent, "push")

    def _push_dense(self) -> Generator[Effect, Any, np.ndarray]:
        """To rank 0, which holds the dense parameters."""
        if self.rank == 0:
            self.dense.parameters -= self.rate * self.dense.gradient
            return self.dense.parameters
        answer: np.ndarray = yield Call(0, self.dense.gradient, "dense")
        return answer

    def _give(self, worker: int, ids: np.ndarray) -> np.ndarray:
        self.seen[worker] = self.taken
        return self.shard.rows[self.shard.place(ids)]

    def _take(self, worker: int, ids: np.ndarray, gradient: np.ndarray) -> None:
        """An asynchronous server notes how many gradients it has taken since the worker had its rows."""
        places = self.shard.place(ids)
        if self.way == "server":
            self.pushed[places] += gradient
            return
        self._clock.note("staleness", float(self.taken - self.seen[worker]))
        self.taken += 1
        self.shard.rows[places] -= self.rate * gradient

    def serve(self, source: int, name: str, value: np.ndarray) -> np.ndarray:
        """See RankProgram: rows by id, gradients of rows, gradients of the dense layers."""
        if name == "pull":
            return self._give(source, value).reshape(-1)
        if name == "push":
            count = len(value) // (8 + 4 * self.form.per_id)
            ids, gradient = value[: 8 * count].view(np.int64), value[8 * count :].view(np.float32)
            self._take(source, ids, gradient.reshape(count, -1))
            self.charge(gradient.nbytes)
            return np.empty(0, np.float32)
        if name == "dense":
            self.dense.parameters -= self.rate * value
            return self.dense.parameters.copy()
        return super().serve(source, name, value)

    def _test(self) -> Generator[Effect, Any, None]:
        """Area under the ROC curve on samples that nobody has seen, noted by rank 0."""
        tests = draw(self.law, self.seed, TEST_STEP, self.test_samples)
        lookup = self._lookup(tests, self.world_size, self.rank)
        sums = lookup.partial(self.form, self.shard.rows[self.shard.place(lookup.ids)])
        yield Collective("all_reduce", sums.reshape(-1), tag=3)
        if self.rank == 0:
            self._clock.note("auc", auc(self.dense.scores(sums), tests.labels))

    def _difference_alone(self) -> float:
        """Largest distance of a loss of the first rank's samples from that of one process with the same minibatches."""
        alone, dense = (
            Shard(self.form, self.law.ids, 0, 1, self.seed),
            Dense(str(self.case.options["model"]), self.form, self.seed),
        )
        largest = 0.0
        for step, ours in enumerate(self.losses):
            whole = draw(self.law, self.seed, step, self.batch * self.world_size)
            lookup = self._lookup(whole)
            rows = alone.rows[lookup.ids]
            partial = lookup.partial(self.form, rows)
            loss, _ = dense.loss(partial[: self.batch].copy(), whole.labels[: self.batch], 1.0)
            largest = max(largest, abs(loss / self.batch - ours))
            _, of_partial = dense.loss(partial, whole.labels, self._scale(self.world_size))
            alone.rows[lookup.ids] -= self.rate * lookup.gradient(self.form, rows, of_partial)
            dense.parameters -= self.rate * dense.gradient
        return largest


PROGRAM = ClickTraining
