"""Drives a rank program in its process: effects become sends, receives and calls of a mailbox, on the rank's clock."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.core.transport_errors import TransportError
from scaleproof.programs.common import leave, mark, sleep_for_compute
from scaleproof.rank_programs.collectives import Collectives, barrier
from scaleproof.rank_programs.effects import (
    Await,
    AwaitAll,
    AwaitAny,
    AwaitFlag,
    Call,
    Cancel,
    Charge,
    Collective,
    CompareAndSwap,
    Compute,
    Effect,
    Ended,
    Flag,
    Get,
    Put,
    Receive,
    Send,
    Sleep,
    Start,
    Started,
    check_cancellable,
    described,
    event_of,
    moved_nbytes,
    source_of,
)
from scaleproof.spec import registry
from scaleproof.spec.case import OwnCase, TrainCase
from scaleproof.spec.plugins import loaded
from scaleproof.transports.mailbox import Mailbox, Posted

POLL_S = 0.01
"""Longest sleep of a poll: too short to stand for computing."""


class Driven(Protocol):
    """A rank program (rank_program.py)."""

    def main(self) -> Generator[Effect, Any, None]: ...
    def serve(self, source: int, name: str, value: np.ndarray) -> np.ndarray: ...
    def regions(self) -> dict[str, np.ndarray]: ...
    def groups(self) -> dict[str, tuple[tuple[int, ...], ...]]: ...
    def checks(self) -> list[tuple[str, bool, str]]: ...


def run_program(context: RankContext, form: Callable[[OwnCase, int, ProcessDriver], Driven]) -> None:
    """Runs a program on this rank, over the mailbox of the case's transport."""
    case = context.case
    assert isinstance(case, OwnCase)
    plugin = case.plugin("transport")
    if plugin.mailbox is None:
        have = ", ".join(registry.with_trait("transport", "mailbox"))
        raise TransportError(
            f"a rank program needs a transport with a mailbox ({have}), not {case.transport!r}: {plugin.no_mailbox}"
        )
    driver = ProcessDriver(context, case, loaded(plugin.mailbox)(context))
    driver.run(lambda: form(case, context.rank, driver))


class ProcessDriver:
    """One rank. In a case with option `slept`, computing takes its seconds (dilated) and not the time of its work."""

    def __init__(self, context: RankContext, case: OwnCase | TrainCase, mailbox: Mailbox) -> None:
        self._context, self._case, self._mailbox = context, case, mailbox
        self._collectives: Collectives
        self._step, self._began, self._zero = -1, 0, 0
        self._lanes: dict[int, ThreadPoolExecutor] = {}
        self._started: list[Future[Any]] = []
        self._posted: list[tuple[Effect, Posted]] = []
        """Of each started effect."""
        self._recording = threading.Lock()
        self._perform: dict[type, Callable[[Any], Any]] = {
            Compute: self._computes,
            Charge: lambda effect: None,
            Sleep: self._sleep,
            Send: lambda effect: self._mailbox.send(effect.value, effect.peer, effect.tag),
            Receive: lambda effect: self._mailbox.receive(effect.source, effect.tag),
            Call: lambda effect: self._mailbox.call(effect.value, effect.peer, effect.name),
            Put: lambda effect: self._mailbox.put(effect.value, effect.peer, effect.region, effect.start),
            Get: lambda effect: self._mailbox.get(effect.peer, effect.region, effect.start, effect.count),
            Flag: lambda effect: self._mailbox.flag(effect.peer, effect.name, effect.add),
            CompareAndSwap: lambda effect: self._mailbox.compare_and_swap(
                effect.peer, effect.name, effect.expected, effect.new
            ),
            AwaitFlag: lambda effect: self._mailbox.await_flag(effect.name, effect.least),
            Start: self._start,
            Collective: lambda effect: self._carry_out_all(self._collectives.messages(effect)),
            Await: lambda effect: self._result(effect.started),
            AwaitAll: lambda effect: [self._result(each) for each in effect.started],
            AwaitAny: self._await_any,
            Cancel: self._cancel,
        }

    def run(self, form: Callable[[], Driven]) -> None:
        """From a barrier of all ranks to the end of all ranks."""
        mailbox = self._mailbox
        try:
            program = form()
            self._collectives = Collectives(self._case, self._context.rank, program.groups())
            mailbox.open(program.serve, program.regions())
            self._barrier()
            mark(self._context, "start", 0, mailbox)
            self._zero = now()
            self._drive(program.main())
            mark(self._context, "end", max(self._step, 0), mailbox)
            self._context.at(self._step, "barrier")
            self._barrier()
            self.after(program)
            leave(self._context, mailbox)
        finally:
            mailbox.abandon()
            for lane in self._lanes.values():
                lane.shutdown(wait=False, cancel_futures=True)
        for name, passed, detail in program.checks():
            self._context.check(name, passed, detail)

    def after(self, program: Driven) -> None:
        """All ranks have ended, outside of the timed region."""

    def memory(self, nbytes: int) -> np.ndarray:
        """See Clock."""
        return self._mailbox.memory(nbytes)

    def step_begins(self, step: int, warmup: bool) -> None:
        """See Clock."""
        self.steps_end()
        self._step, self._began = step, now()
        self._context.recorder.warmup = warmup
        self._context.at(step, "step")

    def now(self) -> float:
        """See Clock."""
        return (now() - self._zero) / 1e9 / self._case.dilation

    def note(self, event: str, value: float) -> None:
        """See Clock."""
        moment = now()
        with self._recording:
            self._context.recorder.add(event, self._step, moment, moment, value=value)

    def steps_end(self) -> None:
        """See Clock."""
        if self._began:
            self._record("step", self._began)
            self._began = 0

    def _drive(self, program: Generator[Effect, Any, None]) -> None:
        result = None
        while True:
            try:
                with self._mailbox.guard:
                    effect = program.send(result)
            except StopIteration:
                return
            if event_of(effect):
                self._context.at(self._step, described(effect))
            result = self._carry_out(effect)

    def _carry_out_all(self, part: Generator[Effect, Any, Any]) -> Any:
        """Effects that are a part of one, without events of their own."""
        result = None
        while True:
            try:
                with self._mailbox.guard:
                    effect = part.send(result)
            except StopIteration as end:
                return end.value
            result = self._perform[type(effect)](effect)

    def _barrier(self) -> None:
        self._drive(barrier(self._context.rank, self._context.world_size))

    def _carry_out(self, effect: Effect, posted: Posted | None = None) -> Any:
        if posted is not None and posted.cancelled:
            return None
        began, name = now(), event_of(effect)
        result = self._wait(effect, posted) if posted is not None else self._perform[type(effect)](effect)
        if name:
            self._record(name, began, moved_nbytes(effect, result), source_of(effect, result))
        return result

    def _computes(self, effect: Compute) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return self._compute(effect)
        self._mailbox.computing = True
        try:
            return self._compute(effect)
        finally:
            self._mailbox.computing = False

    def _compute(self, effect: Compute) -> Any:
        if isinstance(self._case, TrainCase) or not self._case.slept:
            return effect.work() if effect.work else None
        end = time.monotonic() + effect.seconds * self._case.dilation
        result = effect.work() if effect.work else None
        if (left := end - time.monotonic()) > 0:
            sleep_for_compute(self._context, left)
        return result

    def _sleep(self, effect: Sleep) -> None:
        """A sleep longer than a poll stands for work, which a suite's own program may only do where its case says so;
        what a strategy waits for is its own."""
        if isinstance(self._case, OwnCase) and effect.seconds > POLL_S:
            sleep_for_compute(self._context, effect.seconds * self._case.dilation)
        else:
            time.sleep(effect.seconds * self._case.dilation)

    def _start(self, effect: Start) -> Started:
        if effect.lane not in self._lanes:
            self._lanes[effect.lane] = ThreadPoolExecutor(1, f"lane {effect.lane}")
        posted = Posted()
        self._posted.append((effect.effect, posted))
        self._started.append(self._lanes[effect.lane].submit(self._carry_out, effect.effect, posted))
        return Started(len(self._started) - 1)

    def _wait(self, effect: Effect, posted: Posted) -> Any:
        """Carries out a started effect, which may be cancelled where it only waits."""
        if isinstance(effect, Receive):
            return self._mailbox.receive(effect.source, effect.tag, posted)
        if isinstance(effect, AwaitFlag):
            return self._mailbox.await_flag(effect.name, effect.least, posted)
        return self._perform[type(effect)](effect)

    def _cancel(self, effect: Cancel) -> bool:
        waits, posted = self._posted[effect.started.number]
        check_cancellable(waits)
        return self._mailbox.cancel(posted)

    def _has_ended(self, started: Started) -> bool:
        return self._posted[started.number][1].cancelled or self._started[started.number].done()

    def _result(self, started: Started) -> Any:
        return None if self._posted[started.number][1].cancelled else self._started[started.number].result()

    def _await_any(self, effect: AwaitAny) -> Ended:
        if not any(map(self._has_ended, effect.started)):
            wait([self._started[each.number] for each in effect.started], return_when=FIRST_COMPLETED)
        ended = next(filter(self._has_ended, effect.started))
        return Ended(ended, self._result(ended))

    def _record(self, event: str, began: int, nbytes: int = 0, value: float = math.nan) -> None:
        with self._recording:  # lanes record, too
            self._context.recorder.add(event, self._step, began, now(), nbytes, value)
