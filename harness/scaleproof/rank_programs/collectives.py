"""Collectives of rank programs as messages, which a driver carries out in place of the effect. In virtual time they
give the same bits as in processes."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np

from scaleproof.collectives.message_engine import rounds
from scaleproof.collectives.message_schedule import Action, schedule_of
from scaleproof.core.transport_errors import TransportError
from scaleproof.rank_programs.effects import ALL, Apart, Charge, Collective, Effect, Receive, Send
from scaleproof.spec.case import OwnCase, TrainCase
from scaleproof.spec.common_case import NATIVE
from scaleproof.spec.registry import nearest

USUAL = "ring"
"""The algorithm of a case that names none."""


def barrier(rank: int, world_size: int) -> Generator[Effect, Any, None]:
    """All ranks wait for each other: dissemination (Hensgen, Finkel and Manber 1988). Its tags are below 0, so that no
    receive of a program takes them."""
    distance, empty = 1, np.empty(0, np.uint8)
    while distance < world_size:
        yield Send((rank + distance) % world_size, empty, Apart(-distance))
        yield Receive((rank - distance) % world_size, Apart(-distance), "at a barrier")
        distance *= 2


class Collectives:
    """The collectives of a rank. `groups`: of its program."""

    def __init__(self, case: OwnCase | TrainCase, rank: int, groups: Mapping[str, Sequence[Sequence[int]]]) -> None:
        self._case, self._rank = case, rank
        self._groups = {ALL: (tuple(range(case.ranks)),), **groups}
        self._names = sorted(self._groups)

    def messages(self, effect: Collective) -> Generator[Effect, Any, np.ndarray]:
        """The rank's messages of a collective, with tags below those of barriers. Raises TransportError for a group
        that the rank is not in, and where a peer's array, or its collective, is another one."""
        members, case = self._members(effect.group), self._case
        algorithm = USUAL if case.collective == NATIVE else schedule_of(case.collective, case.nodes)
        if "/" in algorithm and effect.group != ALL:
            raise TransportError(f"collective {case.collective!r} runs over all ranks, not in group {effect.group!r}")
        tag = Apart(-case.ranks - effect.tag * len(self._names) - self._names.index(effect.group))
        yield from collective(effect, members, members.index(self._rank), tag, algorithm)
        return effect.value

    def _members(self, group: str) -> tuple[int, ...]:
        if group not in self._groups:
            raise TransportError(f"group {group!r} of a collective on rank {self._rank}: {nearest(group, self._names)}")
        for members in self._groups[group]:
            if self._rank in members:
                return tuple(members)
        raise TransportError(f"rank {self._rank} is in no part of group {group!r}, with which it has a collective")


def collective(
    effect: Collective, members: Sequence[int], own: int, tag: int, algorithm: str = USUAL
) -> Generator[Effect, Any, None]:
    """The messages of a rank, which is member number `own`. Of reduce_scatter and all_gather member r's part is the
    r-th of equal ones."""
    value, what = effect.value, f"in {effect.operation} of {effect.nbytes} B, tag {effect.tag},"
    for messages in rounds(algorithm, effect.operation, len(members), value.size, effect.root, own):
        for message in messages:
            if message.source == own:
                yield Send(members[message.destination], value[message.start : message.stop], tag)
        for message in messages:
            if message.destination != own:
                continue
            part, source = value[message.start : message.stop], members[message.source]
            arrived = (yield Receive(source, tag, what)).value
            if (arrived.size, arrived.dtype) != (part.size, part.dtype):
                raise TransportError(
                    f"{effect.operation} of {value.size} {value.dtype} with tag {effect.tag} on rank {members[own]}: "
                    f"rank {source} sent {arrived.size} {arrived.dtype} where {part.size} {part.dtype} were expected; "
                    "its array or its collective is another one"
                )
            if message.action is Action.COPY:
                np.copyto(part, arrived)
            else:
                np.add(part, arrived, out=part)
                yield Charge(arrived.nbytes)
