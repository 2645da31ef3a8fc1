"""Faults of a case in processes: a rank kills itself, pauses, or loses its calls; its successor joins the others."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.killed_rank import KilledRank, is_gone
from scaleproof.core.recorder import now
from scaleproof.programs.process_driver import ProcessDriver
from scaleproof.rank_programs.effects import Call
from scaleproof.spec.case import TrainCase
from scaleproof.spec.faults import faults_of
from scaleproof.transports.mailbox import Lost, Mailbox


class FaultyDriver(ProcessDriver):
    """A driver that also makes the faults of its rank happen. A successor has none."""

    def __init__(self, context: RankContext, case: TrainCase, mailbox: Mailbox) -> None:
        super().__init__(context, case, mailbox)
        self._faults = faults_of(case.faults)
        mailbox.mortal, mailbox.returning = self._faults.mortal, self._faults.returning
        first = self.succeeds is None
        self._death = self._faults.death_of(context.rank) if first else None
        self._pauses = self._faults.pauses_of(context.rank) if first else []
        self._due, self._in_step = False, threading.RLock()
        """Whether the rank dies as soon as it is in a step; held where a step begins, ends, or is the last one."""
        self._timers: list[threading.Timer] = []
        self.living: tuple[int, ...] = tuple(range(context.world_size))
        """Ranks that have come to their end; complete after it."""
        if self._faults.loss.share:
            self._numbers = count(1)
            self._perform[Call] = partial(self._call_or_lose, self._perform[Call])

    def _begin(self) -> None:
        """See ProcessDriver. A successor does not wait for the others, and has the time of the rank before it."""
        if self._context.predecessor is None:
            super()._begin()
        else:
            self._zero = self._context.predecessor.zero_ns
            self.note("joined", float(self._context.predecessor.step))
        if self._death is not None and self._death.moment.seconds is not None:
            self._after(self._death.moment.seconds, self._die)
        for pause in self._pauses:
            if pause.moment.seconds is not None:
                self._after(pause.moment.seconds, partial(self._pause_guarded, pause.seconds or 0.0))

    def _await_end(self) -> None:
        """See ProcessDriver; without ranks that are gone."""
        for timer in self._timers:
            timer.cancel()
        if not self._faults.mortal:
            super()._await_end()
            return
        context = self._context
        ranks, gone = range(context.world_size), partial(is_gone, context.folder)
        self.living = tuple(context.rendezvous.gather("ended", context.rank, ranks, True, gone))

    def step_begins(self, step: int, warmup: bool) -> None:
        """See Clock; called with the mailbox's guard."""
        with self._in_step:
            super().step_begins(step, warmup)
        for pause in self._pauses:
            if pause.moment.step == step:
                self._pause(pause.seconds or 0.0)
        if self._due or (self._death is not None and self._death.moment.step == step):
            self._die()

    def steps_end(self) -> None:
        """See Clock."""
        with self._in_step:
            super().steps_end()

    def _after(self, seconds: float, happens: Callable[[], None]) -> None:
        """Something happens at a moment in s of true time since this rank began, which it did with all others."""
        wait_s = seconds * self._case.dilation - (now() - self._zero) / 1e9
        timer = threading.Timer(max(wait_s, 0.0), happens)
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def _die(self) -> None:
        """Now, if the rank is in a step; else as soon as it is."""
        with self._in_step:
            if not self._began:
                self._due = True
                return
            assert self._death is not None
            returns = self._death.seconds
            after_s = None if returns is None else returns * self._case.dilation
            self.note("killed", float("nan"))
            KilledRank(self._step, self._zero, after_s).write(self._context.folder, self._context.rank)
            os.kill(os.getpid(), signal.SIGKILL)

    def _pause_guarded(self, seconds: float) -> None:
        with self._mailbox.guard:
            self._pause(seconds)

    def _pause(self, seconds: float) -> None:
        """The caller has the guard: the program goes on to no effect, and calls wait."""
        began = now()
        time.sleep(seconds * self._case.dilation)
        self._record("pause", began)

    def _call_or_lose(self, perform: Callable[[Call], np.ndarray | Lost], effect: Call) -> np.ndarray | Lost:
        loss, context = self._faults.loss, self._context
        if effect.peer == context.rank or not loss.takes(context.seed, context.rank, next(self._numbers)):
            return perform(effect)
        self.note("lost_call", float(effect.peer))
        time.sleep(loss.patience_s * self._case.dilation)
        return Lost(effect.peer)
