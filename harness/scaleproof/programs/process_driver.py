"""Drives a rank program in its process: effects become sends, receives and calls of a mailbox, on the rank's clock."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, Protocol

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.core.transport_errors import PeerLost
from scaleproof.programs.common import leave, mark, sleep_for_compute
from scaleproof.programs.lanes import Lanes
from scaleproof.rank_programs.collectives import Collectives, barrier
from scaleproof.rank_programs.effect_events import described, event_of, recorded
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
    Detach,
    Effect,
    Flag,
    Get,
    Poll,
    Put,
    Receive,
    Send,
    Settle,
    Sleep,
    Start,
)
from scaleproof.rank_programs.polling import polling
from scaleproof.spec.case import OwnCase, TrainCase
from scaleproof.transports.mailbox import Lost, Mailbox, Message, Posted, Serve
from scaleproof.workloads.pace import Pace

POLL_S = 0.01
"""Longest sleep of a poll: too short to stand for computing."""


class Driven(Protocol):
    """A rank program (rank_program.py)."""

    def main(self) -> Generator[Effect, Any, None]: ...
    def serve(self, source: int, name: str, value: np.ndarray) -> np.ndarray: ...
    def regions(self) -> dict[str, np.ndarray]: ...
    def groups(self) -> dict[str, tuple[tuple[int, ...], ...]]: ...
    def checks(self) -> list[tuple[str, bool, str]]: ...


class ProcessDriver:
    """One rank. In a case with option `slept`, computing takes its seconds (dilated) and not the time of its work."""

    def __init__(self, context: RankContext, case: OwnCase | TrainCase, mailbox: Mailbox) -> None:
        self._context, self._case, self._mailbox, self.seed = context, case, mailbox, context.seed
        self.succeeds = context.predecessor.step if context.predecessor else None
        self._collectives: Collectives
        self._step, self._began, self._zero = -1, 0, 0
        self._lanes = Lanes(self._carry_out, mailbox.cancel)
        self._pace: Pace | None = None
        """Of replayed compute, where the program's own arithmetic takes its time, too."""
        self._byte_ns, self._resumed, self._charged = 0.0, 0, 0
        """ns of the launch's clock for a byte of it; when the program went on; bytes that `serve` has charged."""
        self._recording, self._resumes = threading.Lock(), 0
        """`_resumes`: how often the program has gone on."""
        self._perform: dict[type, Callable[[Any], Any]] = {
            Compute: self._computes,
            Charge: lambda effect: self._let_pass(self._resumed, effect.nbytes),
            Sleep: self._sleep,
            Send: lambda effect: self._mailbox.send(effect.value, effect.peer, effect.tag),
            Receive: self._receive,
            Call: lambda effect: self._mailbox.call(effect.value, effect.peer, effect.name),
            Poll: lambda effect: self._carry_out_all(polling(effect)),
            Put: self._put,
            Get: lambda effect: self._mailbox.get(effect.peer, effect.region, effect.start, effect.count),
            Flag: lambda effect: self._mailbox.flag(effect.peer, effect.name, effect.add),
            CompareAndSwap: lambda effect: self._mailbox.compare_and_swap(
                effect.peer, effect.name, effect.expected, effect.new
            ),
            AwaitFlag: lambda effect: self._mailbox.await_flag(effect.name, effect.least),
            Start: self._lanes.start,
            Detach: self._lanes.detach,
            Settle: lambda effect: self._lanes.settle(),
            Collective: lambda effect: self._carry_out_all(self._collectives.messages(effect)),
            Await: lambda effect: self._lanes.awaited(effect.started),
            AwaitAll: lambda effect: [self._lanes.awaited(each) for each in effect.started],
            AwaitAny: self._lanes.await_any,
            Cancel: self._lanes.cancel,
        }

    def run(self, form: Callable[[], Driven]) -> None:
        """From a barrier of all ranks to the end of all ranks."""
        mailbox = self._mailbox
        try:
            program = form()
            self._collectives = Collectives(self._case, self._context.rank, program.groups())
            mailbox.open(self._serving(program), program.regions())
            self._begin()
            self._drive(program.main(), counts=True)
            self._context.at(self._step, "settle")
            self._lanes.settle()
            mark(self._context, "end", max(self._step, 0), mailbox)
            self._context.at(self._step, "barrier")
            self._await_end()
            self.after(program)
            leave(self._context, mailbox)
        finally:
            mailbox.abandon()
            self._lanes.close()
        for name, passed, detail in program.checks():
            self._context.check(name, passed, detail)

    def _begin(self) -> None:
        """All ranks begin together."""
        self._barrier()
        mark(self._context, "start", 0, self._mailbox)
        self._zero = now()

    def _await_end(self) -> None:
        """Until all ranks have ended."""
        self._barrier()

    @property
    def lost(self) -> frozenset[int]:
        """See Clock."""
        return self._mailbox.lost

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

    def charge(self, nbytes: int) -> None:
        """See Clock; the mailbox serves one call at a time."""
        self._charged += nbytes

    def steps_end(self) -> None:
        """See Clock."""
        if self._began:
            self._record("step", self._began)
            self._began = 0

    def _drive(self, program: Generator[Effect, Any, None], counts: bool = False) -> None:
        result = None
        while True:
            try:
                with self._mailbox.guard:
                    self._resumes += counts
                    self._resumed = self._pace.now() if self._pace else 0
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
            charged = type(effect) is Charge  # what a collective adds up belongs to its messages
            result = None if charged else self._perform[type(effect)](effect)

    def _barrier(self) -> None:
        self._drive(barrier(self._context.rank, self._context.world_size))

    def _carry_out(self, effect: Effect, posted: Posted | None = None) -> Any:
        if posted is not None and posted.cancelled:
            return None
        began, name = now(), event_of(effect)
        try:
            result = self._wait(effect, posted) if posted is not None else self._perform[type(effect)](effect)
        except PeerLost as error:
            if error.peer not in self._mailbox.mortal:
                raise
            result = Lost(error.peer)
        if name:
            event, nbytes, value = recorded(name, effect, result)
            self._record(event, began, nbytes, value)
        return result

    def _let_pass(self, began: int, nbytes: int) -> None:
        """The rest of the time that arithmetic on so many bytes takes, which began at a moment of the pace."""
        if self._pace is not None:
            self._pace.wait_until(began + round(nbytes * self._byte_ns))

    def _serving(self, program: Driven) -> Serve:
        """Calls of `serve`, which take the time of what it charges. A traced launch records at which place of its
        program the rank answered each, so that virtual time can play them back (simulate/answered_calls.py)."""
        pace, traced = self._pace, self._case.tracing == "full"
        if pace is None and not traced:
            return program.serve

        def serve(source: int, name: str, value: np.ndarray) -> np.ndarray:
            began, self._charged = pace.now() if pace else 0, 0
            if traced:
                self._record("answered", now(), self._resumes, source)
            answer = program.serve(source, name, value)
            self._let_pass(began, self._charged)
            return answer

        return serve

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

    def _put(self, effect: Put) -> None:
        self._mailbox.put(effect.value, effect.peer, effect.region, effect.start)
        if effect.flag:
            self._mailbox.flag(effect.peer, effect.flag, 1)

    def _sleep(self, effect: Sleep) -> None:
        """A sleep longer than a poll stands for work, which a suite's own program may only do where its case says so;
        what a strategy waits for is its own."""
        if isinstance(self._case, OwnCase) and effect.seconds > POLL_S:
            sleep_for_compute(self._context, effect.seconds * self._case.dilation)
        else:
            time.sleep(effect.seconds * self._case.dilation)

    def _wait(self, effect: Effect, posted: Posted) -> Any:
        """Carries out a started effect, which may be cancelled where it only waits."""
        if isinstance(effect, Receive):
            return self._mailbox.receive(effect.source, effect.tag, posted)
        if isinstance(effect, AwaitFlag):
            return self._mailbox.await_flag(effect.name, effect.least, posted)
        return self._perform[type(effect)](effect)

    def _receive(self, effect: Receive) -> Message | Lost | None:
        if effect.within is None:
            return self._mailbox.receive(effect.source, effect.tag)
        posted = Posted()
        over = threading.Timer(effect.within * self._case.dilation, self._mailbox.cancel, (posted,))
        over.daemon = True
        over.start()
        try:
            return self._mailbox.receive(effect.source, effect.tag, posted)
        finally:
            over.cancel()

    def _record(self, event: str, began: int, nbytes: int = 0, value: float = math.nan) -> None:
        with self._recording:  # lanes record, too
            self._context.recorder.add(event, self._step, began, now(), nbytes, value)
