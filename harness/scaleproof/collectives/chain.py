"""Pipelined chain: pieces are reduced along a line of ranks to rank 0 and come back along it, one hop a round."""

from __future__ import annotations

from collections.abc import Iterator

from scaleproof.collectives.message_schedule import Action, Message, bound, involved
from scaleproof.collectives.ring import all_gather, broadcast, reduce_scatter
from scaleproof.spec.plugins import CollectivePlugin

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce_scatter"]
"""The others are those of the ring, whose broadcast is a pipelined chain too."""
PIECES = 8


def all_reduce(world_size: int, count: int, rank: int | None = None) -> Iterator[Message]:
    """Piece k makes hop h toward rank 0 in round k + h, and hop h back in round k + h after that."""
    hops = world_size - 1
    for step in range(PIECES + 2 * hops - 1):
        for piece in range(max(0, step - 2 * hops + 1), min(PIECES - 1, step) + 1):
            hop = step - piece
            inward = hop < hops
            near = hops - 1 - hop if inward else hop - hops
            source, destination = (near + 1, near) if inward else (near, near + 1)
            if involved(rank, source, destination):
                start, stop = bound(piece, PIECES, count), bound(piece + 1, PIECES, count)
                yield Message(step, source, destination, start, stop, Action.REDUCE if inward else Action.COPY)


PLUGIN = CollectivePlugin(
    name="chain",
    summary="pipelined chain to rank 0 and back",
    implementation=__name__,
    exchange="all-reduce",
    topology="tree",
)
