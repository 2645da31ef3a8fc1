"""Everything through rank 0: it gathers from all ranks, one after the other, and sends the result to all. The simplest
schedule there is, and the one that loads one rank's link the most."""

from __future__ import annotations

from collections.abc import Iterator

from scaleproof.collectives.message_schedule import Action, Message, bound, involved
from scaleproof.spec.plugins import CollectivePlugin


def all_reduce(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Every rank's array is reduced into that of rank 0, which sends the sum to all."""
    yield from _reduce(world_size, count, rank)
    yield from _broadcast(world_size - 1, world_size, count, 0, rank)


def reduce_scatter(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """As all_reduce, but each rank gets its own block only."""
    yield from _reduce(world_size, count, rank)
    for peer in range(1, world_size):
        if involved(rank, 0, peer):
            yield Message(world_size - 1, 0, peer, *_block(peer, world_size, count), Action.COPY)


def all_gather(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Rank 0 receives every block, then sends all of them to all."""
    for peer in range(1, world_size):
        if involved(rank, peer, 0):
            yield Message(0, peer, 0, *_block(peer, world_size, count), Action.COPY)
    yield from _broadcast(1, world_size, count, 0, rank)


def broadcast(world_size: int, count: int, root: int = 0, rank: int | None = None) -> Iterator[Message]:
    """The root sends to every rank."""
    yield from _broadcast(0, world_size, count, root, rank)


def _reduce(world_size: int, count: int, rank: int | None) -> Iterator[Message]:
    """One sender per round: no rank may receive an element twice in a round."""
    for peer in range(1, world_size):
        if involved(rank, peer, 0):
            yield Message(peer - 1, peer, 0, 0, count, Action.REDUCE)


def _broadcast(number: int, world_size: int, count: int, root: int, rank: int | None) -> Iterator[Message]:
    for peer in range(world_size):
        if peer != root and involved(rank, root, peer):
            yield Message(number, root, peer, 0, count, Action.COPY)


def _block(rank: int, world_size: int, count: int) -> tuple[int, int]:
    return bound(rank, world_size, count), bound(rank + 1, world_size, count)


PLUGIN = CollectivePlugin(
    name="through_root",
    summary="gather to rank 0 and broadcast from it",
    implementation=__name__,
    exchange="reduce",
    topology="dedicated-master",
)
