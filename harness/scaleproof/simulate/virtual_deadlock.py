"""Why ranks in virtual time wait for ever: for a rank that has ended, or for each other in a circle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import networkx

from scaleproof.rank_programs.effect_events import described
from scaleproof.rank_programs.effects import ANY, AwaitFlag, Effect, Receive
from scaleproof.simulate.virtual_rank import Rank

SHOWN = 6
"""Most ranks of a circle that a message names."""


def why(ranks: Sequence[Rank]) -> str:
    """One line on ranks of which some have not ended."""
    waiting = [rank for rank in ranks if not rank.done]
    graph = networkx.MultiDiGraph()
    for rank, effect in ((each, effect) for each in waiting for effect in each.waits()):
        peers = list(_peers(rank, effect, ranks))
        if all(peer.done for peer in peers):
            who = f"rank {peers[0].number} has ended" if len(peers) == 1 else "no other rank is left"
            return f"{_named(rank, effect)} waits for ever: {who}{_others(waiting, [rank])}"
        graph.add_edges_from((rank.number, peer.number, {"effect": effect}) for peer in peers)
    circle = networkx.find_cycle(graph, source=waiting[0].number)
    named = [_named(ranks[number], graph.edges[number, peer, key]["effect"]) for number, peer, key in circle]
    more = f", and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    rest = _others(waiting, [ranks[number] for number, _, _ in circle])
    return f"ranks wait for each other for ever: {'; then '.join(named[:SHOWN])}{more}{rest}"


def _peers(rank: Rank, effect: Effect, ranks: Sequence[Rank]) -> Iterator[Rank]:
    """Ranks of which any one can end the wait."""
    if isinstance(effect, Receive) and effect.source != ANY:
        yield ranks[effect.source]
    elif isinstance(effect, Receive | AwaitFlag):
        yield from (other for other in ranks if other is not rank)


def _named(rank: Rank, effect: Effect) -> str:
    return f"{rank.where} ({described(effect)})"


def _others(waiting: Sequence[Rank], named: Sequence[Rank]) -> str:
    left = [rank for rank in waiting if rank not in named]
    return f"; {len(left)} other rank{'s have' if len(left) > 1 else ' has'} not ended" if left else ""
