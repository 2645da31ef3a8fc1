"""A rank in virtual time that faults of its case kill or pause, or that takes the place of such a rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from scaleproof.rank_programs.effects import Effect
from scaleproof.rank_programs.rank_program import Form
from scaleproof.simulate.virtual_rank import Rank, Report, Then
from scaleproof.spec.case import TrainCase
from scaleproof.spec.faults import Faults


class Died(BaseException):
    """Ends a program whose rank is killed. No program catches it."""


class MortalRank(Rank):
    """`predecessor`: the rank whose place it takes, and then it has no faults of its own."""

    def __init__(
        self,
        form: Form,
        case: TrainCase,
        number: int,
        now: Callable[[], float],
        report: Report,
        faults: Faults,
        predecessor: Rank | None = None,
    ) -> None:
        self.succeeds = predecessor.step if predecessor else None
        self.paused_until = 0.0
        self.calls: dict[int, tuple[int, Then]] = {}
        """Calls that have no answer yet, by a number: the peer, and what follows."""
        self.losable = 0
        """Calls so far that could get lost."""
        self._predecessor, self._dilation = predecessor, case.dilation
        self._death = faults.death_of(number) if predecessor is None else None
        self._pauses = faults.pauses_of(number) if predecessor is None else []
        self._due = False
        super().__init__(form, case, number, now, report)

    @property
    def alarms(self) -> list[tuple[float, Callable[[], bool]]]:
        """What happens at moments in s of true time since all ranks began; True: the rank is dead then."""
        found: list[tuple[float, Callable[[], bool]]] = []
        if self._death is not None and self._death.moment.seconds is not None:
            found.append((self._death.moment.seconds, self._dies))
        for pause in self._pauses:
            if pause.moment.seconds is not None:
                found.append((pause.moment.seconds, partial(self._pause, pause.seconds or 0.0)))
        return found

    def successor_after_s(self) -> float | None:
        """How long after its death a successor begins, in s of true time; None: it has none."""
        return self._death.seconds if self._death is not None else None

    def _begin(self) -> Generator[Effect, Any, None]:
        if self._predecessor is None:
            yield from super()._begin()
        else:
            self._zero = self._predecessor._zero
            self._report(self, "joined", self._now(), float(self._predecessor.step))

    def _await_end(self) -> Generator[Effect, Any, None]:
        """A rank that has ended still answers calls."""
        yield from ()

    def step_begins(self, step: int, warmup: bool) -> None:
        """See Clock."""
        super().step_begins(step, warmup)
        for pause in self._pauses:
            if pause.moment.step == step:
                self._pause(pause.seconds or 0.0)
        if self._due or (self._death is not None and self._death.moment.step == step):
            raise Died

    def _dies(self) -> bool:
        """Now, if the rank is in a step; else as soon as it is."""
        self._due = self._began < 0
        return not self._due

    def _pause(self, seconds: float) -> bool:
        self.paused_until = self._now() + seconds * self._dilation
        self._report(self, "pause", self._now(), math.nan, end=self.paused_until)
        return False
