"""Effects that a rank in a process carries out beside its program: a thread for each lane, and what has not ended."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from scaleproof.core.transport_errors import TransportError
from scaleproof.rank_programs.effect_events import check_cancellable
from scaleproof.rank_programs.effects import DETACHED, AwaitAny, Cancel, Detach, Effect, Ended, Start, Started
from scaleproof.transports.mailbox import Posted


@dataclass(slots=True, eq=False)
class Beside:
    """An effect that was begun on a lane. `done`: it has its value, or the error that it has raised."""

    effect: Effect
    posted: Posted
    done: bool = False
    value: Any = None
    error: BaseException | None = None

    @property
    def ended(self) -> bool:
        """Whether it has its result, or never will have one."""
        return self.done or self.posted.cancelled

    def result(self) -> Any:
        """Of one that has ended. Raises what the effect raised."""
        if self.posted.cancelled:
            return None
        if self.error is not None:
            raise self.error
        return self.value


class Lanes:
    """Of one rank. `carry_out`: called in the lane's thread; `cancel`: of the mailbox. A program may start an
    effect for each message that it sends: threads with a queue each cost it less than executors with futures."""

    def __init__(self, carry_out: Callable[[Effect, Posted], Any], cancel: Callable[[Posted], bool]) -> None:
        self._carry_out, self._cancel = carry_out, cancel
        self._queues: dict[int, SimpleQueue[Beside | None]] = {}
        self._changed, self._closed = threading.Condition(), False
        """Something has ended; nothing is begun any more."""
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
            self._result(self._detached.popleft())

    def settle(self) -> None:
        """Waits until all that was detached has ended."""
        while self._detached:
            self._result(self._detached.popleft())

    def awaited(self, started: Started) -> Any:
        """The result of a started effect, which is forgotten then."""
        if started.number not in self._started:
            raise TransportError(f"a started effect is awaited once: number {started.number} was awaited before")
        return self._result(self._started.pop(started.number))

    def await_any(self, effect: AwaitAny) -> Ended:
        """Carries out AwaitAny."""
        with self._changed:
            while (ended := self._first_ended(effect.started)) is None:
                self._changed.wait()
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
        self._closed = True
        for queue in self._queues.values():
            queue.put(None)

    def _first_ended(self, started: tuple[Started, ...]) -> Started | None:
        return next((each for each in started if self._started[each.number].ended), None)

    def _result(self, beside: Beside) -> Any:
        """Waits for it."""
        if not beside.ended:
            with self._changed:
                while not beside.ended:
                    self._changed.wait()
        return beside.result()

    def _begun(self, effect: Effect, lane: int) -> Beside:
        if lane not in self._queues:
            queue = self._queues[lane] = SimpleQueue[Beside | None]()
            threading.Thread(target=self._work, args=(queue,), name=f"lane {lane}", daemon=True).start()
        beside = Beside(effect, Posted())
        self._queues[lane].put(beside)
        return beside

    def _work(self, queue: SimpleQueue[Beside | None]) -> None:
        """The thread of a lane: one effect after the other."""
        while (beside := queue.get()) is not None and not self._closed:
            try:
                beside.value = self._carry_out(beside.effect, beside.posted)
            except BaseException as error:
                beside.error = error
            with self._changed:
                beside.done = True
                self._changed.notify_all()
