"""Polls where messages take no time: all peers are asked at one moment, without a message for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scaleproof.rank_programs.effects import Poll
from scaleproof.simulate.virtual_messages import Moves
from scaleproof.simulate.virtual_rank import Rank, Then
from scaleproof.spec.errors import SpecError


class FreePolls:
    """`ranks`: all of them, when the first poll is carried out. `failed`: an error of a program in one line."""

    def __init__(
        self, moves: Moves, ranks: Sequence[Rank], dilation: float, failed: Callable[[str, Exception], SpecError]
    ) -> None:
        self._moves, self._ranks, self._dilation, self._failed = moves, ranks, dilation, failed

    def carry_out(self, rank: Rank, effect: Poll, then: Then) -> None:
        """As rank_programs/polling.py does."""
        ranks, moves, seconds, asked = self._ranks, self._moves, effect.seconds * self._dilation, 0

        def ask() -> None:
            nonlocal asked
            try:
                peers = effect.peers()
            except Exception as error:
                raise self._failed(rank.where, error) from error
            asked += len(peers)
            for peer in peers:
                if ranks[peer].program.finished < effect.least:
                    moves.after(seconds, ask)
                    return
            then(asked)

        ask()
