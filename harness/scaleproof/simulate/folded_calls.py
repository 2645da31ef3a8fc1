"""Collective calls of which equal replicas take equal parts: one participant stands for all that do the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scaleproof.rank_programs.graph.replicas import Replicas
from scaleproof.simulate.call_schedules import CallSchedules
from scaleproof.simulate.collective_schedules import Pattern, Round
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine.phases import Phase, before_messages


@dataclass(frozen=True, eq=False)
class Participant:
    """Member number `member` of a call of `ranks`; `stands`: for each member, the participant that stands for it."""

    member: int
    ranks: np.ndarray
    stands: np.ndarray


def schedule(
    engine: Engine,
    ways: CallSchedules,
    pattern: Pattern,
    nbytes: float,
    people: Sequence[Participant],
    *,
    channel: int = 0,
    gamma: float = 0.0,
    call_s: float = 0.0,
) -> int:
    """The number of the schedule of a call of these participants, which takes each of them `call_s` beside its
    messages. `ways`: of messages between ranks."""
    phases = [_phase(ways, each, times, nbytes, people, channel, gamma) for each, times in pattern.rounds]
    return engine.schedule([*before_messages(len(people), call_s), *phases])


def _phase(
    ways: CallSchedules,
    round_: Round,
    times: int,
    nbytes: float,
    people: Sequence[Participant],
    channel: int,
    gamma: float,
) -> Phase:
    sends, receives, work = np.zeros(len(people), np.int64), np.zeros(len(people), np.int64), np.zeros(len(people))
    sources, destinations, standing, shares = list[np.ndarray](), list[np.ndarray](), list[np.ndarray](), []
    for number, person in enumerate(people):
        sent, received = round_.source == person.member, round_.destination == person.member
        sends[number], receives[number] = np.count_nonzero(sent), np.count_nonzero(received)
        work[number] = gamma * nbytes * float(round_.share[received & round_.reduces].sum())
        to = round_.destination[sent]
        sources.append(np.full(len(to), person.ranks[person.member]))
        destinations.append(person.ranks[to])
        standing.append(person.stands[to])
        shares.append(round_.share[sent])
    size = np.concatenate(shares) * nbytes
    return Phase(
        times,
        sends=sends,
        receives=receives,
        work=work,
        destination=np.concatenate(standing),
        nbytes=size,
        **ways.ways(np.concatenate(sources), np.concatenate(destinations), size, channel),
    )


def unchanged(pattern: Pattern, members: np.ndarray) -> bool:
    """Whether the messages of a call are the same when each member has the number that `members` gives it."""
    return all(
        np.array_equal(
            _rows(round_.source, round_.destination, round_),
            _rows(members[round_.source], members[round_.destination], round_),
        )
        for round_, _ in pattern.rounds
    )


def _rows(source: np.ndarray, destination: np.ndarray, round_: Round) -> np.ndarray:
    rows = np.stack([source, destination, round_.share, round_.reduces])
    return rows[:, np.lexsort(rows)]


class FoldedSchedules:
    """Schedules of calls of all ranks, in which those of replica 0 stand for all. In place of CallSchedules. `ways`: of
    messages between ranks."""

    def __init__(
        self, engine: Engine, ways: CallSchedules, replicas: Replicas, gamma: float, call_s: float = 0.0
    ) -> None:
        self._engine, self._ways, self._gamma, self._call_s = engine, ways, gamma, call_s
        every = np.arange(replicas.ranks.size)
        self._people = [Participant(rank, every, replicas.place) for rank in replicas.ranks[0].tolist()]
        self._known: dict[tuple[int, float, int], int] = {}
        self._patterns: list[Pattern] = []  # keeps them, and so their ids, alive

    def of(self, pattern: Pattern, nbytes: float, channel: int = 0) -> int:
        """The number of the schedule of a call over so many bytes."""
        key = id(pattern), nbytes, channel
        if key not in self._known:
            self._patterns.append(pattern)
            self._known[key] = schedule(
                self._engine,
                self._ways,
                pattern,
                nbytes,
                self._people,
                channel=channel,
                gamma=self._gamma,
                call_s=self._call_s,
            )
        return self._known[key]
