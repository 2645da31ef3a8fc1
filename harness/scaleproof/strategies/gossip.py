"""Gossip: every rank trains at its own pace and now and then averages its parameters with those of a random peer
(jin2016). No rank waits for all others."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import Call, Charge, Detach, Effect, Gradient, Update
from scaleproof.spec.faults import Name
from scaleproof.spec.plugins import Options, StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags
from scaleproof.strategies.replica import Replica, check_peers
from scaleproof.transports.mailbox import Lost

NOTHING = np.empty(0, np.float32)
BORNE: frozenset[Name] = frozenset({"kill", "replace", "lose"})
"""Faults: ranks go on with the peers that are left."""


class GossipOptions(Options):
    """Options of gossip."""

    form: Literal["pull", "push", "push_pull"] = Field(
        "pull",
        description="pull: a rank takes the parameters of a peer and keeps the mean of both; push: it sends its own, "
        "and the peer takes the mean of all it has received and its own at its next exchange; push_pull: both.",
    )
    tau: int = Field(1, ge=1, description="Steps between two exchanges of a rank.")
    averaged: Literal["after_step", "before_step"] = Field(
        "after_step",
        description="after_step: the optimiser steps, then the parameters are averaged (textbook form); "
        "before_step: they are averaged, then stepped with the gradient at the parameters before.",
    )
    draws: Literal["others", "all"] = Field(
        "others", description="all: a rank may draw itself as its peer, which exchanges nothing."
    )


class Gossip(Replica):
    """`serve` answers with the parameters of the last finished step, which nobody changes, so that no peer reads a half
    of a step."""

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        options = self.case.options_of(GossipOptions)
        yield from self.take_place()
        for step in self.steps():
            yield Gradient(step)
            due = (step + 1) % options.tau == 0
            if due and options.averaged == "before_step":
                yield from self.exchange(options)
            yield Update()
            if due and options.averaged == "after_step":
                yield from self.exchange(options)
            self.publish()

    def regions(self) -> dict[str, np.ndarray]:
        """See RankProgram; also what peers meet before the first step: nothing of a successor."""
        self.published = NOTHING if self.is_successor else self.x.copy()
        self.arrived, self.count = np.zeros_like(self.x), 0
        self.lock = threading.Lock()
        return {}

    def take_place(self) -> Generator[Effect, Any, None]:
        """A successor begins with the parameters of a peer."""
        if not self.is_successor:
            return
        while (peer := self.random_peer()) != self.rank:
            value = yield Call(peer, NOTHING, "pull")
            if not isinstance(value, Lost) and len(value):
                self.x[:] = value
                break
        self.publish()

    def publish(self) -> None:
        """Peers get the parameters as they are now."""
        self.published = self.x.copy()

    def exchange(self, options: GossipOptions) -> Generator[Effect, Any, None]:
        """One exchange with a random peer."""
        if options.form != "pull":
            yield from self.take_arrived()
        peer = self.peer(options.draws == "all")
        if peer == self.rank:
            return
        if options.form == "push":
            yield Detach(Call(peer, self.x.copy(), "push"))
            return
        name, value = ("exchange", self.x) if options.form == "push_pull" else ("pull", NOTHING)
        other = yield Call(peer, value, name)
        if isinstance(other, Lost) or not len(other):
            return
        self.x += other
        self.x *= np.float32(0.5)
        yield Charge(2 * self.x.nbytes)

    def take_arrived(self) -> Generator[Effect, Any, None]:
        """The mean of what peers have pushed since the last exchange and the own parameters."""
        if self._average_in():
            yield Charge(2 * self.x.nbytes)

    def _average_in(self) -> int:
        """How many parameters of peers there were."""
        with self.lock:
            count, total = self.count, self.arrived
            if count:
                self.arrived, self.count = np.zeros_like(self.x), 0
        if count:
            self.x += total
            self.x /= np.float32(count + 1)
        self.note("received", count)
        return count

    def end(self) -> None:
        """See Replica."""
        if self.count:
            self._average_in()

    def peer(self, draws_itself: bool) -> int:
        """A random rank; this one, with which nothing is exchanged, in place of one that is gone."""
        if not draws_itself:
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


PLUGIN = StrategyPlugin(
    name="gossip",
    summary="asynchronous: parameters are averaged with those of a random peer",
    implementation=Gossip,
    options=GossipOptions,
    check=check_peers,
    collective_calls=False,
    rank_program=ReplicaTraits(pace="own", end="apart", evaluated="average", bears=BORNE),
    tags=asynchronous_tags("decentralized", "asynchronous", "p2p-mesh"),
)
