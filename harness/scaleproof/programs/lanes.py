"""Effects that a rank in a process carries out beside its program: a thread for each lane, and what has not ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from scaleproof.core.transport_errors import TransportError
from scaleproof.rank_programs.effect_events import check_cancellable
from scaleproof.rank_programs.effects import DETACHED, AwaitAny, Cancel, Detach, Effect, Ended, Start, Started
from scaleproof.transports.mailbox import Posted


@dataclass(frozen=True, slots=True)
class Beside:
    """An effect that was begun on a lane."""

    effect: Effect
    posted: Posted
    future: Future[Any]

    @property
    def ended(self) -> bool:
        """Whether it has its result, or never will have one."""
        return self.posted.cancelled or self.future.done()

    def result(self) -> Any:
        """Waits for it. Raises what the effect raised."""
        return None if self.posted.cancelled else self.future.result()


class Lanes:
    """Of one rank. `carry_out`: called in the lane's thread; `cancel`: of the mailbox."""

    def __init__(self, carry_out: Callable[[Effect, Posted], Any], cancel: Callable[[Posted], bool]) -> None:
        self._carry_out, self._cancel = carry_out, cancel
        self._threads: dict[int, ThreadPoolExecutor] = {}
        self._started: dict[int, Beside] = {}
        """Those that were not awaited yet, by number."""
        self._detached: deque[Beside] = deque()
        self._count = 0

    def start(self, effect: Start) -> Started:
        """Carries out Start."""
        number, self._count = self._count, self._count + 1
        self._started[number] = self._begun(effect.effect, effect.lane)
        return Started(number)

    def detach(self, effect: Detach) -> None:
        """Carries out Detach, and raises what an earlier one has raised."""
        self._detached.append(self._begun(effect.effect, effect.lane))
        while self._detached and (self._detached[0].ended or len(self._detached) > DETACHED):
            self._detached.popleft().result()

    def settle(self) -> None:
        """Waits until all that was detached has ended."""
        while self._detached:
            self._detached.popleft().result()

    def awaited(self, started: Started) -> Any:
        """The result of a started effect, which is forgotten then."""
        if started.number not in self._started:
            raise TransportError(f"a started effect is awaited once: number {started.number} was awaited before")
        return self._started.pop(started.number).result()

    def await_any(self, effect: AwaitAny) -> Ended:
        """Carries out AwaitAny."""
        beside = {each: self._started[each.number] for each in effect.started}
        if not any(each.ended for each in beside.values()):
            wait([each.future for each in beside.values()], return_when=FIRST_COMPLETED)
        ended = next(started for started, each in beside.items() if each.ended)
        return Ended(ended, self.awaited(ended))

    def cancel(self, effect: Cancel) -> bool:
        """Carries out Cancel; one that was awaited has ended."""
        beside = self._started.get(effect.started.number)
        if beside is None:
            return False
        check_cancellable(beside.effect)
        return self._cancel(beside.posted)

    def close(self) -> None:
        """Begins nothing any more."""
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)

    def _begun(self, effect: Effect, lane: int) -> Beside:
        if lane not in self._threads:
            self._threads[lane] = ThreadPoolExecutor(1, f"lane {lane}")
        posted = Posted()
        return Beside(effect, posted, self._threads[lane].submit(self._carry_out, effect, posted))
