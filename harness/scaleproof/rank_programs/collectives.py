"""Collectives as parts of rank programs: `yield from all_reduce(...)`. In virtual time they give the same bits as in
processes."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.collectives.message_engine import rounds
from scaleproof.collectives.message_schedule import Action
from scaleproof.core.transport_errors import TransportError
from scaleproof.rank_programs.effects import Charge, Effect, Receive, Send
from scaleproof.spec.case import Operation


def barrier(rank: int, world_size: int) -> Generator[Effect, Any, None]:
    """All ranks wait for each other: dissemination (Hensgen, Finkel and Manber 1988). Its tags are below 0, so that no
    receive of a program takes them."""
    distance, empty = 1, np.empty(0, np.uint8)
    while distance < world_size:
        yield Send((rank + distance) % world_size, empty, -distance)
        yield Receive((rank - distance) % world_size, -distance)
        distance *= 2


def all_reduce(
    rank: int, world_size: int, value: np.ndarray, tag: int, algorithm: str = "ring"
) -> Generator[Effect, Any, None]:
    """Sums a flat array over all ranks, in place. `tag`: of no other message at that time."""
    yield from collective("all_reduce", rank, world_size, value, tag, algorithm)


def collective(
    operation: Operation,
    rank: int,
    world_size: int,
    value: np.ndarray,
    tag: int,
    algorithm: str = "ring",
    root: int = 0,
) -> Generator[Effect, Any, None]:
    """Any operation on a flat array, in place; sums where it reduces. Of reduce_scatter and all_gather rank r's part is
    the r-th of `world_size` equal ones. Raises TransportError where a peer's array, or its collective, is another
    one."""
    for messages in rounds(algorithm, operation, world_size, value.size, root, rank):
        for message in messages:
            if message.source == rank:
                yield Send(message.destination, value[message.start : message.stop], tag)
        for message in messages:
            if message.destination != rank:
                continue
            own, arrived = value[message.start : message.stop], (yield Receive(message.source, tag)).value
            if (arrived.size, arrived.dtype) != (own.size, own.dtype):
                raise TransportError(
                    f"{operation} of {value.size} {value.dtype} with tag {tag} on rank {rank}: rank {message.source} "
                    f"sent {arrived.size} {arrived.dtype} where {own.size} {own.dtype} were expected; its array or its "
                    "collective is another one"
                )
            if message.action is Action.COPY:
                np.copyto(own, arrived)
            else:
                np.add(own, arrived, out=own)
                yield Charge(arrived.nbytes)
