"""The forms of gossip and of elastic averaging that jin2016's code has, driven by hand: one rank, its peers made up."""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scaleproof.programs.evaluation import Evaluation
from scaleproof.rank_programs.effects import Call, CompareAndSwap, Detach, Effect, Get, Gradient, Put
from scaleproof.strategies.averaged_gradients import AveragedGradients
from scaleproof.strategies.elastic_averaging import ElasticAveraging
from scaleproof.strategies.gossip import Gossip
from scaleproof.strategies.replica import Replica, Snapshot
from tests.short_form import train_case

LEARNING_RATE, MOMENTUM = 0.5, 0.5
Answer = Callable[[Effect], Any]


class Clock:
    """A clock on which no time passes."""

    succeeds: int | None = None
    seed = 0
    lost: frozenset[int] = frozenset()

    def step_begins(self, step: int, warmup: bool) -> None: ...
    def steps_end(self) -> None: ...
    def note(self, event: str, value: float) -> None: ...
    def charge(self, nbytes: int) -> None: ...

    def now(self) -> float:
        return 0.0

    def memory(self, nbytes: int) -> np.ndarray:
        return np.zeros(nbytes, np.uint8)


def replica(form: type[Replica], strategy: dict[str, Any], start: list[float], ranks: int = 4, rank: int = 1) -> Any:
    """A rank with these parameters, and what peers reach of it."""
    case = train_case(
        transport="tcp",
        collective="ring",
        workload="dnn_digits",
        data="digits",
        minibatch=60,
        ranks=ranks,
        strategy=strategy,
        learning_rate=LEARNING_RATE,
        momentum=MOMENTUM,
        warmup=0,
    )
    learner: Any = SimpleNamespace(
        parameters=np.array(start, np.float32), gradient=np.ones(len(start), np.float32), update=lambda: None
    )
    made = form(case, rank, Clock(), learner, 0)
    made.regions()
    return made


def drive(program: Generator[Effect, Any, Any], answer: Answer = lambda effect: None) -> list[Effect]:
    """All effects, each with its answer; what the program gives is dropped."""
    effects, result = [], None
    while True:
        try:
            effects.append(program.send(result))
        except StopIteration:
            return effects
        result = answer(effects[-1])


def test_nesterovs_gradient_is_taken_ahead_and_the_step_starts_where_the_rank_was() -> None:
    rank = replica(Gossip, {"name": "gossip", "momentum": "nesterov"}, [0.0])
    seen = []

    def look(effect: Effect) -> None:
        if isinstance(effect, Gradient):
            seen.append(float(rank.x[0]))

    where = []
    for step in range(3):
        drive(rank.stepper.gradient(step), look)
        drive(rank.stepper.update())
        where.append(float(rank.x[0]))
    assert where == [-0.5, -1.25, -2.125], "v = m v - lr g, x = x + v, with g = 1"
    assert seen == [0.0, -0.5 + 0.5 * -0.5, -1.25 + 0.5 * -0.75]


def test_what_has_arrived_is_averaged_with_the_weight_of_the_own_parameters() -> None:
    rank = replica(Gossip, {"name": "gossip", "form": "push", "weight": 2.0}, [4.0])
    drive(rank.take_arrived(2.0))
    assert rank.x.tolist() == [4.0], "nothing has arrived"
    for value in (1.0, 3.0):
        rank.serve(0, "push", np.array([value], np.float32))
    drive(rank.take_arrived(2.0))
    assert rank.x.tolist() == [(1 + 3 + 2 * 4) / 4]


@pytest.mark.parametrize(("drawn", "expected", "sends"), [(1, (1 + 2 * 4) / 3, 0), (2, (1 + 4) / 2, 1)])
def test_a_rank_that_draws_itself_pushes_to_nobody_and_counts_once_more(
    monkeypatch: pytest.MonkeyPatch, drawn: int, expected: float, sends: int
) -> None:
    rank = replica(Gossip, {"name": "gossip", "form": "push", "draws": "all"}, [4.0])
    monkeypatch.setattr(rank, "peer", lambda: drawn)
    rank.serve(0, "push", np.array([1.0], np.float32))
    effects = drive(rank.exchange())
    assert sum(isinstance(effect, Detach) for effect in effects) == sends
    assert rank.x.tolist() == [expected]


def test_a_push_has_the_parameters_before_what_has_arrived() -> None:
    rank = replica(Gossip, {"name": "gossip", "form": "push"}, [4.0])
    rank.serve(0, "push", np.array([0.0], np.float32))
    (start,) = [effect for effect in drive(rank.exchange()) if isinstance(effect, Detach)]
    assert isinstance(start.effect, Call) and start.effect.value.tolist() == [4.0]
    assert rank.x.tolist() == [2.0]


def test_a_pull_of_several_rounds_is_the_mean_of_all_drawn_and_the_own(monkeypatch: pytest.MonkeyPatch) -> None:
    rank = replica(Gossip, {"name": "gossip", "draws": "all", "rounds": 3}, [4.0])
    peers = iter([0, 1, 2])
    monkeypatch.setattr(rank, "peer", lambda: next(peers))
    drive(rank.exchange(), lambda effect: np.array([8.0], np.float32) if isinstance(effect, Call) else None)
    assert rank.x.tolist() == [(4 + 8 + 4 + 8) / 4]


def test_momentum_that_is_sent_along_is_averaged_too() -> None:
    rank = replica(Gossip, {"name": "gossip", "sent": "with_momentum"}, [4.0])
    rank.stepper.velocity[:] = 2.0
    drive(rank.exchange(), lambda effect: np.array([0.0, 1.0], np.float32) if isinstance(effect, Call) else None)
    assert (rank.x.tolist(), rank.stepper.velocity.tolist()) == ([2.0], [1.5])


@pytest.mark.parametrize(("published", "seen"), [("each_step", 4.0), ("at_exchange", 5.0)])
def test_peers_see_what_was_published_last(published: str, seen: float) -> None:
    rank = replica(Gossip, {"name": "gossip", "published": published}, [4.0])
    rank.x += 1
    drive(rank.exchange(), lambda effect: rank.x.copy() if isinstance(effect, Call) else None)
    assert rank.serve(0, "pull", np.empty(0, np.float32)).tolist() == [seen]


def test_a_window_is_put_and_got_and_nobody_is_called() -> None:
    rank = replica(Gossip, {"name": "gossip", "reads": "one_sided", "published": "at_exchange"}, [4.0])
    effects = drive(rank.exchange(), lambda effect: np.array([0.0], np.float32) if isinstance(effect, Get) else None)
    assert [type(effect) for effect in effects][:2] == [Put, Get]
    assert not any(isinstance(effect, Call) for effect in effects)


def test_gradients_are_averaged_before_the_step() -> None:
    rank = replica(AveragedGradients, {"name": "averaged_gradients", "momentum": "nesterov"}, [0.0])
    rank.g[:] = 8.0  # as if all four ranks had 8 in their sum
    drive(rank.main())
    assert rank.x.tolist() == [-LEARNING_RATE * 8 / 4]


BESIDE = {"name": "elastic_averaging", "dedicated_servers": 0, "exchange": "parameters", "order": "after_gradient"}


def test_a_centre_beside_rank_0_moves_as_far_as_the_worker() -> None:
    holder = replica(ElasticAveraging, {**BESIDE, "beta": 0.8}, [0.0], rank=0)
    worker = replica(ElasticAveraging, {**BESIDE, "beta": 0.8}, [10.0], rank=2)
    worker.g[:] = 0.0
    drive(
        worker.main(),
        lambda effect: holder.serve(2, effect.name, effect.value) if isinstance(effect, Call) else None,
    )
    assert worker.x.tolist() == pytest.approx([10 - 0.2 * 10])
    assert holder.centre.tolist() == pytest.approx([0.2 * 10])
    holder.keep()
    worker.keep()
    both = Evaluation(
        (holder.snapshots[-1], Snapshot(0, 0, 0.0, np.zeros(1)), worker.snapshots[-1], worker.snapshots[-1])
    )
    assert both.model(holder.case).tolist() == pytest.approx([2.0]), "the centre is evaluated"
    assert len(both.replicas(holder.case)) == 3, "and is no replica"


def test_a_worker_takes_the_lock_before_it_puts_and_tries_again_where_another_has_it() -> None:
    worker = replica(ElasticAveraging, {"name": "elastic_averaging", "exchange": "locked"}, [10.0], rank=2)
    words = iter([3, 0, 3])  # another worker has it; ready; and this one's own at the end

    def answer(effect: Effect) -> Any:
        if isinstance(effect, CompareAndSwap):
            return next(words)
        return np.array([0.0], np.float32) if isinstance(effect, Get) else None

    effects = drive(worker.move_locked(), answer)
    kinds = [type(effect).__name__ for effect in effects]
    assert kinds == ["CompareAndSwap", "Sleep", "CompareAndSwap", "Put", "Get", "CompareAndSwap"]
    swaps = [(effect.expected, effect.new) for effect in effects if isinstance(effect, CompareAndSwap)]
    receiving, done = swaps[-1]
    assert swaps[:2] == [(0, receiving)] * 2 and receiving < done


def test_the_server_moves_the_centre_when_a_worker_is_done_and_sets_it_ready() -> None:
    server = replica(ElasticAveraging, {"name": "elastic_averaging", "exchange": "locked", "alpha": 0.5}, [0.0], rank=0)
    server.sent[:] = 10.0
    done, ended = server._word(1, 2), server._word(2, 2)
    words = iter([done, ended, server._word(2, 1), server._word(2, 3)])
    effects = drive(server.main(), lambda effect: next(words) if type(effect).__name__ == "AwaitFlag" else None)
    assert server.centre.tolist() == server.x.tolist() == [5.0]
    swaps = [(effect.expected, effect.new) for effect in effects if isinstance(effect, CompareAndSwap)]
    assert swaps[:2] == [(done, 0), (ended, 0)] and len(swaps) == 4
