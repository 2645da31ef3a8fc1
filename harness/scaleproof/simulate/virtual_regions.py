"""Puts, gets, flags and compare-and-swaps in virtual time: messages that no program of the target takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from scaleproof.rank_programs.effects import AwaitFlag, CompareAndSwap, Flag, Get, Put
from scaleproof.simulate.virtual_messages import Moves, nothing
from scaleproof.simulate.virtual_rank import Rank, Then, WantedFlag


class RegionMoves:
    """`ranks`: all of them, when the first effect is carried out. `perform`: what carries out each effect."""

    def __init__(self, moves: Moves, ranks: Sequence[Rank]) -> None:
        self._moves, self._ranks = moves, ranks
        self.perform: dict[type, Callable[[Rank, Any, Then], None]] = {
            Put: self._put,
            Get: self._get,
            Flag: self._flag,
            CompareAndSwap: self._compare_and_swap,
            AwaitFlag: self._await_flag,
        }

    def _put(self, rank: Rank, effect: Put, then: Then) -> None:
        value, peer = effect.value.copy(), self._ranks[effect.peer]

        def there() -> None:
            peer.regions.put(rank.number, effect.region, effect.start, value)
            if effect.flag:
                peer.regions.flag(effect.flag, 1)
                peer.flag_changed(effect.flag)

        self._moves.move(rank.number, effect.peer, value.nbytes, partial(then, None), there)

    def _get(self, rank: Rank, effect: Get, then: Then) -> None:
        def asked() -> None:
            value = self._ranks[effect.peer].regions.get(rank.number, effect.region, effect.start, effect.count)
            self._moves.move(effect.peer, rank.number, value.nbytes, nothing, partial(then, value))

        self._moves.move(rank.number, effect.peer, 0, nothing, asked)

    def _flag(self, rank: Rank, effect: Flag, then: Then) -> None:
        peer = self._ranks[effect.peer]

        def there() -> None:
            peer.regions.flag(effect.name, effect.add)
            peer.flag_changed(effect.name)

        self._moves.move(rank.number, effect.peer, 0, partial(then, None), there)

    def _compare_and_swap(self, rank: Rank, effect: CompareAndSwap, then: Then) -> None:
        peer = self._ranks[effect.peer]

        def asked() -> None:
            old = peer.regions.compare_and_swap(effect.name, effect.expected, effect.new)
            peer.flag_changed(effect.name)
            self._moves.move(effect.peer, rank.number, 0, nothing, partial(then, old))

        self._moves.move(rank.number, effect.peer, 0, nothing, asked)

    def _await_flag(self, rank: Rank, effect: AwaitFlag, then: Then) -> None:
        if (value := rank.regions.flags.get(effect.name, 0)) >= effect.least:
            then(value)
        else:
            rank.wanted_flags.append(WantedFlag(effect, then))
