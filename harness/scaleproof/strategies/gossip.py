"""Gossip: every rank trains at its own pace and now and then averages its parameters with those of a random peer
(jin2016). No rank waits for all others."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import Call, Charge, Detach, Effect, Get, Put
from scaleproof.rank_programs.rank_program import Clock
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.faults import Name
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags
from scaleproof.strategies.own_momentum import MomentumOptions, Stepper
from scaleproof.strategies.replica import Replica, check_peers
from scaleproof.strategies.strategy_options import PeriodOptions
from scaleproof.transports.mailbox import Lost
from scaleproof.workloads.learner import Learner

NOTHING = np.empty(0, np.float32)
BORNE: frozenset[Name] = frozenset({"kill", "replace", "lose"})
"""Faults: ranks go on with the peers that are left."""
WINDOW = "window"
"""The region that peers read."""


class GossipOptions(PeriodOptions, MomentumOptions):
    """Options of gossip."""

    form: Literal["pull", "push", "push_pull"] = Field(
        "pull",
        description="pull: a rank takes the parameters of a peer and keeps the mean of both; push: it sends its own, "
        "and takes the mean of all it has received since its last exchange and its own; push_pull: both.",
    )
    averaged: Literal["after_step", "before_step"] = Field(
        "after_step",
        description="after_step: the optimiser steps, then the parameters are averaged (textbook form); "
        "before_step: they are averaged, then stepped with the gradient at the parameters before.",
    )
    draws: Literal["others", "all"] = Field(
        "others", description="all: a rank may draw itself as its peer, which exchanges nothing."
    )
    rounds: int = Field(
        1, ge=1, description="pull, push_pull: peers of an exchange; the mean is that of theirs and the own parameters."
    )
    weight: float = Field(
        1.0,
        gt=0,
        description="push, push_pull: weight of the own parameters in the mean with what has arrived, and one more "
        "where a rank that pushes has drawn itself.",
    )
    sent: Literal["parameters", "with_momentum"] = Field(
        "parameters", description="with_momentum: the last step is sent and averaged too, which doubles the bytes."
    )
    published: Literal["each_step", "at_exchange"] = Field(
        "each_step",
        description="When peers that pull get to see the parameters of a rank: after each of its steps, or at the "
        "beginning of each of its exchanges (jin2016).",
    )
    reads: Literal["call", "one_sided"] = Field(
        "call",
        description="pull: call: a peer's passive side answers; one_sided: a rank reads a region of its peer, whose "
        "program takes no part (jin2016's window).",
    )


class Gossip(Replica):
    """`serve` answers with what was published last, which nobody changes, so that no peer reads a half of a step."""

    def __init__(self, case: TrainCase, rank: int, clock: Clock, learner: Learner, seed: int) -> None:
        super().__init__(case, rank, clock, learner, seed)
        self.options = case.options_of(GossipOptions)
        self.stepper = Stepper(self, self.options.momentum, self.options.sent == "with_momentum")

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        options = self.options
        yield from self.start_successor()
        for step in self.steps():
            yield from self.stepper.gradient(step)
            due = (step + 1) % options.tau == 0
            if due and options.averaged == "before_step":
                yield from self.exchange()
            yield from self.stepper.update()
            if due and options.averaged == "after_step":
                yield from self.exchange()
            yield from self.end_step()

    def regions(self) -> dict[str, np.ndarray]:
        """See RankProgram; also what peers meet before the first step: nothing of a successor."""
        self.published, self.arrived, self.count = self.state(), np.zeros_like(self.state()), 0
        if self.is_successor:
            self.published = NOTHING
        self.lock = threading.Lock()
        if self.options.reads == "call":
            return {}
        window = self.memory(len(self.state()))
        window[:] = self.state()
        return {WINDOW: window}

    def start_successor(self) -> Generator[Effect, Any, None]:
        """A successor begins with the parameters of a peer."""
        if not self.is_successor:
            return
        while (peer := self.random_peer()) != self.rank:
            value = yield Call(peer, NOTHING, "pull")
            if not isinstance(value, Lost) and len(value):
                self.take(value)
                break
        yield from self.publish()

    def state(self) -> np.ndarray:
        """A copy of what ranks average: the parameters, and the last step where it is sent along."""
        velocity = self.stepper.velocity
        if velocity is None or self.options.sent == "parameters":
            return self.x.copy()
        return np.concatenate([self.x, velocity])

    def take(self, state: np.ndarray) -> None:
        """The rank goes on from an average."""
        self.x[:] = state[: len(self.x)]
        if self.stepper.velocity is not None and len(state) > len(self.x):
            self.stepper.velocity[:] = state[len(self.x) :]

    def publish(self) -> Generator[Effect, Any, None]:
        """From now on peers get the parameters as they are now. A put never meets a read half-way."""
        if self.options.reads == "one_sided":
            yield Put(self.rank, self.state(), WINDOW)
        else:
            self.published = self.state()

    def end_step(self) -> Generator[Effect, Any, None]:
        """Publishes where that is due after each step."""
        if self.options.published == "each_step":
            yield from self.publish()

    def exchange(self) -> Generator[Effect, Any, None]:
        """One exchange with random peers."""
        if self.options.published == "at_exchange":
            yield from self.publish()
        if self.options.form == "push":
            yield from self._push()
            return
        if self.options.form == "push_pull":
            yield from self.take_arrived(self.options.weight)
        yield from self._pull()

    def _push(self) -> Generator[Effect, Any, None]:
        """To one peer; then what has arrived."""
        peer, weight = self.peer(), self.options.weight
        if peer == self.rank:
            weight += 1
        else:
            yield Detach(Call(peer, self.state(), "push"))
        yield from self.take_arrived(weight)

    def _pull(self) -> Generator[Effect, Any, None]:
        """The mean of what the drawn peers have published and the own parameters."""
        peers = [self.peer() for _ in range(self.options.rounds)]
        if all(peer == self.rank for peer in peers):
            return
        total = self.state()
        own = total.copy()
        read = 1
        for peer in peers:
            other = own if peer == self.rank else (yield from self._read(peer))
            if isinstance(other, Lost) or not len(other):
                continue
            total += other
            read += 1
        total *= np.float32(1 / read)
        self.take(total)
        yield Charge(read * total.nbytes)

    def _read(self, peer: int) -> Generator[Effect, Any, np.ndarray | Lost]:
        if self.options.reads == "one_sided":
            read: np.ndarray | Lost = yield Get(peer, WINDOW)
            return read
        pushed = self.options.form == "push_pull"
        answer: np.ndarray | Lost = yield Call(
            peer, self.state() if pushed else NOTHING, "exchange" if pushed else "pull"
        )
        return answer

    def take_arrived(self, weight: float) -> Generator[Effect, Any, None]:
        """The mean of what peers have pushed since the last exchange, and the own parameters with a weight; nothing
        changes where nothing has arrived."""
        if self._average_in(weight):
            yield Charge(2 * self.arrived.nbytes)

    def _average_in(self, weight: float) -> int:
        """How many parameters of peers there were."""
        with self.lock:
            count, total = self.count, self.arrived
            if count:
                self.arrived, self.count = np.zeros_like(total), 0
        if count:
            own = self.state()
            own *= np.float32(weight)
            total += own
            total /= np.float32(count + weight)
            self.take(total)
        self.note("received", count)
        return count

    def end(self) -> None:
        """See Replica."""
        if self.count:
            self._average_in(self.options.weight)

    def peer(self) -> int:
        """A random rank; this one, with which nothing is exchanged, in place of one that is gone."""
        if self.options.draws == "others":
            return self.random_peer()
        drawn = int(self.random.integers(self.world_size))
        return self.rank if drawn in self._clock.lost else drawn

    def serve(self, source: int, name: str, value: np.ndarray) -> np.ndarray:
        """See RankProgram."""
        if name in ("push", "exchange"):
            with self.lock:
                self.arrived += value
                self.count += 1
            self.charge(value.nbytes)
        return self.published if name in ("pull", "exchange") else NOTHING


def check(case: TrainCase) -> None:
    """Raises FieldError for a rank without a peer, and options of another form of gossip."""
    check_peers(case)
    options = case.options_of(GossipOptions)
    if options.rounds > 1 and options.form == "push":
        raise FieldError("strategy.rounds", "a push has one peer; leave it out, or set form: pull or push_pull")
    if options.weight != 1 and options.form == "pull":
        raise FieldError("strategy.weight", "is for what peers push; leave it out, or set form: push or push_pull")
    if options.reads == "one_sided" and options.form != "pull":
        raise FieldError("strategy.reads", f"a peer's passive side takes what is pushed: form {options.form!r} calls")
    if options.sent == "with_momentum" and not case.momentum:
        raise FieldError("strategy.sent", "the case has momentum 0: there is none to send")


PLUGIN = StrategyPlugin(
    name="gossip",
    summary="asynchronous: parameters are averaged with those of a random peer",
    implementation=Gossip,
    options=GossipOptions,
    check=check,
    collective_calls=False,
    rank_program=ReplicaTraits(pace="own", end="apart", evaluated="average", bears=BORNE),
    tags=asynchronous_tags("decentralized", "asynchronous", "p2p-mesh"),
)
